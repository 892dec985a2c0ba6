import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDuration, parseDurationMs } from "./duration.ts";

test("durations are read and written", () => {
  const cases: [string, string][] = [
    ["90", "90s"],
    ["90s", "90s"],
    ["120s", "2m"],
    ["15m", "15m"],
    ["24h", "1d"],
    ["36h", "36h"],
    ["30d", "30d"],
    ["2w", "14d"],
    ["0s", "0s"],
  ];
  for (const [given, shown] of cases) assert.equal(formatDuration(parseDurationMs(given) ?? -1), shown, given);
  for (const bad of ["", "d", "1.5h", "-1d", "1y", "1 d", "9999999999999s"]) assert.equal(parseDurationMs(bad), null);
});
