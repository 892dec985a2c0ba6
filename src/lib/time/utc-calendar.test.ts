import assert from "node:assert/strict";
import { test } from "node:test";
import {
  dayStart,
  hourOf,
  hourToRfc3339,
  monthStart,
  nextMonthStart,
  parseRfc3339Utc,
  weekStart,
} from "./utc-calendar.ts";

const hour = (text: string): number => hourOf(Date.parse(text));

test("buckets start at midnight, on Mondays and on the first of the month, in UTC", () => {
  const rows: [string, string, string, string][] = [
    // Columns: an hour, and the start of its day, week and month.
    ["2024-02-29T23:00:00Z", "2024-02-29T00:00:00Z", "2024-02-26T00:00:00Z", "2024-02-01T00:00:00Z"],
    ["2024-03-01T00:00:00Z", "2024-03-01T00:00:00Z", "2024-02-26T00:00:00Z", "2024-03-01T00:00:00Z"],
    ["2024-12-31T12:00:00Z", "2024-12-31T00:00:00Z", "2024-12-30T00:00:00Z", "2024-12-01T00:00:00Z"],
    ["2025-01-05T23:00:00Z", "2025-01-05T00:00:00Z", "2024-12-30T00:00:00Z", "2025-01-01T00:00:00Z"],
    ["2025-01-06T00:00:00Z", "2025-01-06T00:00:00Z", "2025-01-06T00:00:00Z", "2025-01-01T00:00:00Z"],
    ["2025-03-30T02:00:00Z", "2025-03-30T00:00:00Z", "2025-03-24T00:00:00Z", "2025-03-01T00:00:00Z"],
    ["1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1969-12-29T00:00:00Z", "1970-01-01T00:00:00Z"],
  ];
  for (const [at, day, week, month] of rows) {
    assert.equal(hourToRfc3339(dayStart(hour(at))), day);
    assert.equal(hourToRfc3339(weekStart(hour(at))), week);
    assert.equal(hourToRfc3339(monthStart(hour(at))), month);
  }
  assert.equal(hourToRfc3339(nextMonthStart(hour("2024-12-15T00:00:00Z"))), "2025-01-01T00:00:00Z");
});

test("times are RFC 3339 in UTC and nothing else", () => {
  const good: [string, string][] = [
    ["2026-01-31T10:20:30Z", "2026-01-31T10:20:30.000Z"],
    ["2026-01-31T10:20:30.5Z", "2026-01-31T10:20:30.500Z"],
    ["2026-01-31T10:20:30.123456789Z", "2026-01-31T10:20:30.123Z"],
    ["2024-02-29T00:00:00+00:00", "2024-02-29T00:00:00.000Z"],
    ["2026-01-31t10:20:30z", "2026-01-31T10:20:30.000Z"],
    ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"],
  ];
  for (const [text, iso] of good) assert.equal(parseRfc3339Utc(text), new Date(iso).getTime(), text);
  const bad = [
    "",
    "2026-01-31",
    "2026-01-31T10:20Z",
    "2026-01-31T10:20:30",
    "2026-01-31 10:20:30Z",
    "2026-01-31T10:20:30+01:00",
    "2026-01-31T10:20:30 00:00",
    "2026-02-29T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-00-10T00:00:00Z",
    "2026-01-31T24:00:00Z",
    "2026-06-30T23:59:60Z",
    "1767225600",
    "２026-01-31T10:20:30Z",
    "2026-01-31T10:20:30Z\n",
  ];
  for (const text of bad) assert.equal(parseRfc3339Utc(text), null, text);
});
