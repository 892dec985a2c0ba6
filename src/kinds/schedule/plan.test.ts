import assert from "node:assert/strict";
import { test } from "node:test";
import type { Schedule } from "./kind.ts";
import { planSchedule } from "./plan.ts";

const at = (text: string): number => Date.parse(`2027-03-01T${text}Z`);
const schedule = (type: string, value: string, more: Partial<Schedule> = {}): Schedule =>
  ({
    spec: { type, value },
    state: {},
    createdAt: at("11:00:30.000"),
    updatedAt: at("11:00:30.000"),
    deletedAt: null,
    ...more,
  }) as Schedule;

test("a schedule is due at its times and not again", () => {
  const everyMinute = schedule("cron", "* * * * *");
  const fired = { ...everyMinute, state: { lastSlot: at("11:01:00.000") } };
  const hourly = schedule("cron", "0 * * * *");
  const once = schedule("at", "2027-03-01T12:00:00Z");
  const cases: [string, Schedule, string, object[], number | undefined][] = [
    ["before its time", everyMinute, "11:00:40.000", [], 20_000],
    ["at its time", everyMinute, "11:01:00.000", [{ do: "fire", slot: at("11:01:00.000") }], undefined],
    ["a little late", everyMinute, "11:01:01.500", [{ do: "fire", slot: at("11:01:00.000") }], undefined],
    ["fired already", fired, "11:01:01.500", [], 58_500],
    ["changed after its time", { ...everyMinute, updatedAt: at("11:01:00.500") }, "11:01:01.000", [], 59_000],
    [
      "hours late, yet another slot is fresh",
      everyMinute,
      "18:30:10.000",
      [{ do: "fire", slot: at("18:30:00.000") }],
      undefined,
    ],
    ["hours late", hourly, "14:30:00.000", [{ do: "miss", slot: at("12:00:00.000") }], undefined],
    ["once, before", once, "11:59:59.000", [], 1000],
    ["once, on time", once, "12:00:00.000", [{ do: "fire", slot: at("12:00:00.000") }], undefined],
    ["once, too late", once, "12:02:00.000", [{ do: "miss", slot: at("12:00:00.000") }], undefined],
    ["once, done", { ...once, state: { lastSlot: at("12:00:00.000") } }, "12:00:01.000", [], undefined],
    ["leaving", { ...everyMinute, deletedAt: 1 }, "11:01:00.000", [], undefined],
  ];
  for (const [title, record, now, steps, againMs] of cases) {
    const plan = planSchedule(record, at(now));
    // Only the steps and the next look are compared: newer slots may follow an old one.
    assert.deepEqual([title, plan.steps, plan.againMs], [title, steps, againMs]);
  }
});
