import assert from "node:assert/strict";
import { test } from "node:test";
import { SEVERITY, type SeverityName, severityName } from "../../contract/log-line.ts";
import { LINE_CHARS_MAX, parseLine } from "./parse-output.ts";

const ESCAPE = String.fromCharCode(27);

test("the severity of a plain line is guessed from how it begins", () => {
  const cases: [string, SeverityName][] = [
    ["listening on 80", "INFO"],
    ["0 errors, all is well", "INFO"],
    ["ERROR: no database", "ERROR"],
    ["2026-01-01 12:00:00,000 - app - WARNING - slow", "WARNING"],
    ["[debug] cache miss", "DEBUG"],
    ["warn: deprecated", "WARNING"],
    ["time=now level=fatal msg=end", "FATAL"],
    ["TypeError: x is not a function", "ERROR"],
    ["Traceback (most recent call last):", "ERROR"],
    ["panic: runtime error", "FATAL"],
    ["TRACE enter", "TRACE"],
  ];
  for (const [text, name] of cases) assert.equal(severityName(parseLine(text, "stdout", "run").severity), name, text);
  assert.equal(parseLine("    at main (index.js:1:1)", "stderr", "run").severity, SEVERITY.ERROR);
  assert.equal(parseLine("npm notice", "stderr", "build").severity, SEVERITY.INFO);
});

test("a structured line says its message, severity and trace itself", () => {
  const cases: [object, number][] = [
    [{ severity: "WARNING" }, SEVERITY.WARNING],
    [{ level: "error" }, SEVERITY.ERROR],
    [{ level: 30 }, SEVERITY.INFO],
    [{ level: 60 }, SEVERITY.FATAL],
    [{ severity: 18 }, 18],
    [{ level: "odd" }, SEVERITY.INFO],
    [{ level: { deep: 1 } }, SEVERITY.INFO],
    [{}, SEVERITY.INFO],
  ];
  for (const [fields, severity] of cases)
    assert.equal(parseLine(JSON.stringify({ message: "m", ...fields }), "stdout", "run").severity, severity);
  assert.deepEqual(parseLine('{"msg":"hello","level":20,"traceId":"abc","user":7}', "stdout", "run"), {
    message: "hello",
    severity: SEVERITY.DEBUG,
    traceId: "abc",
    attributes: { user: 7 },
  });
});

test("what only looks structured stays as it is", () => {
  for (const text of ["{", '{"a":1}', '{"message":7}', "{}", "[1]"])
    assert.equal(parseLine(text, "stdout", "run").message, text);
});

test("colours go, and a line has a longest length", () => {
  assert.equal(parseLine(`${ESCAPE}[31mred${ESCAPE}[0m`, "stdout", "run").message, "red");
  const long = parseLine("x".repeat(LINE_CHARS_MAX + 5), "stdout", "run").message;
  assert.match(long, /x \[\.\.\. 5 characters more\]$/);
  const inside = parseLine(JSON.stringify({ message: "y".repeat(2 * LINE_CHARS_MAX) }), "stdout", "run");
  assert.ok(inside.message.length < LINE_CHARS_MAX + 100);
});
