import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "../../test/properties.ts";
import { PlatformError } from "../contract/errors.ts";
import { DAY_MS, HOUR_MS } from "../lib/time/clock.ts";
import { hourMs, hourToRfc3339 } from "../lib/time/utc-calendar.ts";
import type { Grain } from "../store/usage/port.ts";
import { bucketHoursOf, chooseResolution, coverWindow, parseWindow } from "./window.ts";

const START = "2025-01-01T00:00:00Z";
const windowOf = (startTime: string, lengthMs: number) =>
  parseWindow(startTime, new Date(Date.parse(startTime) + lengthMs).toISOString());

test("the default resolution follows the length of the window", () => {
  const rows: [number, string][] = [
    [1, "hourly"],
    [7 * DAY_MS - 1, "hourly"],
    [7 * DAY_MS, "daily"],
    [90 * DAY_MS - 1, "daily"],
    [90 * DAY_MS, "weekly"],
    [365 * DAY_MS - 1, "weekly"],
    [365 * DAY_MS, "monthly"],
    [3000 * DAY_MS, "monthly"],
  ];
  for (const [lengthMs, resolution] of rows) {
    assert.equal(chooseResolution(windowOf(START, lengthMs), undefined), resolution);
  }
});

test("an explicit resolution is held to its cap, which is itself allowed", () => {
  const rows: [string, string, number][] = [
    ["hourly", START, 7 * DAY_MS],
    ["daily", START, 90 * DAY_MS],
    ["weekly", START, 365 * DAY_MS],
    ["weekly", "2024-01-01T00:00:00Z", 366 * DAY_MS],
    ["weekly", "2024-02-29T00:00:00Z", 366 * DAY_MS],
    ["weekly", "2024-06-01T00:00:00Z", 365 * DAY_MS],
  ];
  for (const [resolution, start, capMs] of rows) {
    assert.equal(chooseResolution(windowOf(start, capMs), resolution), resolution);
    assert.throws(() => chooseResolution(windowOf(start, capMs + 1), resolution), refusal("resolution"));
  }
  assert.equal(chooseResolution(windowOf(START, 20_000 * DAY_MS), "monthly"), "monthly");
  assert.throws(() => chooseResolution(windowOf(START, 1), "yearly"), refusal("resolution"));
  assert.throws(() => chooseResolution(windowOf(START, 1), "constructor"), refusal("resolution"));
});

test("windows that are none are refused by the name of the wrong end", () => {
  assert.throws(() => parseWindow("yesterday", START), refusal("startTime"));
  assert.throws(() => parseWindow(START, "2025-01-01T00:00:00+02:00"), refusal("endTime"));
  assert.throws(() => parseWindow(START, START), refusal("endTime"));
  assert.throws(() => parseWindow(START, "2024-12-31T00:00:00Z"), refusal("endTime"));
  assert.throws(() => parseWindow("0001-01-01T00:00:00Z", START), refusal("startTime"));
  assert.throws(() => parseWindow(START, "9999-01-01T00:00:00Z"), refusal("endTime"));
});

test("buckets cover the whole window, the first and the last one possibly sticking out", () => {
  const buckets = (startTime: string, endTime: string, resolution: "hourly" | "daily" | "weekly" | "monthly") =>
    bucketHoursOf(parseWindow(startTime, endTime), resolution).map(hourToRfc3339);
  assert.deepEqual(buckets("2024-02-28T23:30:00Z", "2024-03-01T00:00:00.001Z", "daily"), [
    "2024-02-28T00:00:00Z",
    "2024-02-29T00:00:00Z",
    "2024-03-01T00:00:00Z",
  ]);
  assert.deepEqual(buckets("2024-12-29T00:00:00Z", "2025-01-06T00:00:00Z", "weekly"), [
    "2024-12-23T00:00:00Z",
    "2024-12-30T00:00:00Z",
  ]);
  assert.deepEqual(buckets("2024-11-30T23:59:59Z", "2025-02-01T00:00:00Z", "monthly"), [
    "2024-11-01T00:00:00Z",
    "2024-12-01T00:00:00Z",
    "2025-01-01T00:00:00Z",
  ]);
  assert.equal(buckets("2025-03-30T00:00:00Z", "2025-03-31T00:00:00Z", "hourly").length, 24);
});

test("buckets are those of UTC wherever the server stands, when its clocks change too", () => {
  const told = process.env.TZ;
  const windows = [
    ["2026-03-08T00:00:00Z", "2026-03-10T00:00:00Z", "hourly"],
    ["2026-03-25T12:00:00Z", "2026-04-10T00:00:00Z", "daily"],
    ["2025-10-20T00:00:00Z", "2026-02-01T00:00:00Z", "weekly"],
    ["2024-02-29T00:00:00Z", "2026-11-02T00:00:00Z", "monthly"],
  ] as const;
  const all = () =>
    windows.map(([startTime, endTime, resolution]) => {
      const window = parseWindow(startTime, endTime);
      const parts = coverWindow(window.startMs, window.endMs, "month");
      return [bucketHoursOf(window, resolution).map(hourToRfc3339), parts, chooseResolution(window, resolution)];
    });
  try {
    process.env.TZ = "UTC";
    const expected = all();
    for (const zone of ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia"]) {
      process.env.TZ = zone;
      assert.notEqual(new Date(2026, 0, 1).getTime(), Date.UTC(2026, 0, 1), `${zone} is in force`);
      assert.deepEqual(all(), expected, zone);
    }
  } finally {
    if (told === undefined) delete process.env.TZ;
    else process.env.TZ = told;
  }
});

test("any window is covered once, without gap or overlap, in few parts", () => {
  const anyMs = fc.integer({ min: 0, max: 3000 * DAY_MS });
  fc.assert(
    fc.property(
      anyMs,
      fc.integer({ min: 1, max: 900 * DAY_MS }),
      fc.constantFrom("hour", "day", "week", "month"),
      (from, length, grain) => {
        for (const alignMs of [1, HOUR_MS, DAY_MS]) {
          const startMs = Math.floor(from / alignMs) * alignMs;
          const endMs = startMs + Math.ceil(length / alignMs) * alignMs;
          const parts = coverWindow(startMs, endMs, grain as Grain);
          let reachedMs = startMs;
          for (const part of parts) {
            const [partStartMs, partEndMs] =
              part.from === "rollup" ? [hourMs(part.startHour), hourMs(part.endHour)] : [part.startMs, part.endMs];
            assert.equal(partStartMs, reachedMs);
            assert.ok(partEndMs > partStartMs);
            reachedMs = partEndMs;
          }
          assert.equal(reachedMs, endMs);
          assert.ok(parts.length <= 7);
        }
      },
    ),
  );
});

const refusal = (parameter: string) => (error: unknown) =>
  error instanceof PlatformError &&
  error.status === 400 &&
  error.message.startsWith(parameter) &&
  error.body?.parameter === parameter;
