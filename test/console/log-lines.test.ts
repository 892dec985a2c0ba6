import assert from "node:assert/strict";
import { test } from "node:test";
import { type LogLine, mergePage, wantedBy, withNewLines } from "../../console/lib/log-lines.ts";

const line = (timestamp: string, workload = "a"): LogLine => ({
  ...{ timestamp, workload, message: `at ${timestamp}`, severity: 9, trace_id: "" },
});

test("pages of several workloads leave no gap: what one of them did not tell yet waits for the next page", () => {
  const answer = {
    a: { logs: [line("9"), line("8"), line("5")], totalCount: 7 },
    b: { logs: [line("7"), line("2")], totalCount: 2 },
  };
  const { lines, before } = mergePage(answer);
  assert.deepEqual(
    lines.map(({ timestamp, workload }) => timestamp + workload),
    ["5a", "7b", "8a", "9a"],
  );
  assert.equal(before, "5");
  assert.equal(mergePage({ b: answer.b }).before, null);
});

test("new lines come once, in order, and the oldest go", () => {
  const old = [line("1"), line("3")];
  const times = (lines: readonly LogLine[]) => lines.map(({ timestamp }) => timestamp).join("");
  assert.equal(times(withNewLines(old, [line("3"), line("4")], 10)), "134");
  assert.equal(times(withNewLines(old, [line("2", "b")], 10)), "123", "of another workload, late");
  assert.equal(times(withNewLines(old, [line("4"), line("5")], 3)), "345");
  assert.equal(withNewLines(old, [line("3")], 10), old);
});

test("an expression filters, and a wrong one says so", () => {
  assert.deepEqual(
    ["xAT 1", "no"].map((message) => wantedBy("at \\d").isWanted({ ...line("1"), message })),
    [true, false],
  );
  assert.match(wantedBy("(").wrong ?? "", /Unterminated|Invalid/);
});
