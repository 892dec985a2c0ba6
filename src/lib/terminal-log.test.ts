import assert from "node:assert/strict";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { formatLogLine } from "./terminal-log.ts";

const format = (record: object): string =>
  stripVTControlCharacters(formatLogLine(JSON.stringify({ time: 0, pid: 1, hostname: "h", ...record })));

test("a line has time, level, sentence and fields", () => {
  assert.match(
    format({ level: 40, msg: "slow", ms: 12, route: "/v0", nested: { a: 1 } }),
    /^\d\d:\d\d:\d\d warn {2}slow ms=12 route=\/v0 nested=\{"a":1\}$/,
  );
});

test("an error's stack stands below", () => {
  const line = format({ level: 50, msg: "failed", err: { message: "boom", stack: "Error: boom\n    at here" } });
  assert.match(line, /error failed\n {4}Error: boom\n {8}at here$/);
});
