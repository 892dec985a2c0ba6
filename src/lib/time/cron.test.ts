import assert from "node:assert/strict";
import { test } from "node:test";
import { cronTimes, dueTimes, missedTimes } from "./cron.ts";

const at = (text: string): number => Date.parse(text);

test("a pattern is read in its time zone, through the changes of its clocks", () => {
  const cases: [string, string, string, string][] = [
    ["0 9 * * *", "UTC", "2027-03-01T08:00:00Z", "2027-03-01T09:00:00Z"],
    ["0 9 * * *", "America/New_York", "2027-03-01T08:00:00Z", "2027-03-01T14:00:00Z"],
    ["0 9 * * *", "Asia/Kolkata", "2027-03-01T08:00:00Z", "2027-03-02T03:30:00Z"],
    // Daylight saving in Berlin: clocks go from 2 to 3 o'clock in spring, and from 3 back to 2 in autumn.
    ["30 2 * * *", "Europe/Berlin", "2027-03-28T00:00:00Z", "2027-03-28T01:00:00Z"],
    ["0 4 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", "2027-03-28T02:00:00Z"],
    ["30 2 * * *", "Europe/Berlin", "2027-10-31T00:45:00Z", "2027-11-01T01:30:00Z"],
  ];
  for (const [pattern, zone, after, next] of cases)
    assert.equal(cronTimes(pattern, zone)(at(after)), at(next), `${pattern} ${zone} after ${after}`);
  assert.throws(() => cronTimes("* * * * *", "Mars/Olympus")(0));
  assert.throws(() => cronTimes("* * * *", "UTC"));
});

test("one late time is acted on, older ones are missed and counted within a bound", () => {
  const next = cronTimes("*/5 * * * *", "UTC");
  const since = at("2027-03-01T12:00:00Z");
  const due = (now: string) => dueTimes(next, since, at(now));
  assert.deepEqual(due("2027-03-01T12:04:59Z"), { first: at("2027-03-01T12:05:00Z"), fire: null });
  assert.deepEqual(due("2027-03-01T12:05:01Z"), {
    first: at("2027-03-01T12:05:00Z"),
    fire: at("2027-03-01T12:05:00Z"),
  });
  assert.deepEqual(due("2027-03-01T13:20:30Z"), {
    first: at("2027-03-01T12:05:00Z"),
    fire: at("2027-03-01T13:20:00Z"),
  });
  assert.deepEqual(due("2027-03-01T13:22:30Z"), { first: at("2027-03-01T12:05:00Z"), fire: null });
  const first = at("2027-03-01T12:05:00Z");
  assert.equal(missedTimes(next, first, first), null);
  assert.deepEqual(missedTimes(next, first, at("2027-03-01T12:20:00Z")), {
    first,
    last: at("2027-03-01T12:15:00Z"),
    count: 3,
    more: false,
  });
  const year = missedTimes(next, first, at("2028-03-01T12:20:00Z"));
  assert.deepEqual([year?.count, year?.more], [100, true]);
});
