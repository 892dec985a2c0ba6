import assert from "node:assert/strict";
import { test } from "node:test";
import { linesOfDifference } from "../../console/lib/text-difference.ts";

const shown = (before: string, after: string): string =>
  linesOfDifference(before, after)
    .map(({ sign, text }) => sign + text)
    .join("|");

test("lines of both texts stay, those of one are marked, in order", () => {
  assert.equal(shown("a\nb\nc", "a\nx\nc\nd"), " a|-b|+x| c|+d");
  assert.equal(shown("same", "same"), " same");
  assert.equal(shown("", "new"), "-|+new");
});

test("every line of both texts is told, also of texts that are too long to compare", () => {
  const long = Array.from({ length: 3000 }, (_, at) => `line ${at}`).join("\n");
  for (const [before, after] of [
    ["a\nb\na\nb", "b\na\nb\na"],
    [long, `${long}\nlast`],
  ] as const) {
    const found = linesOfDifference(before, after);
    const side = (sign: string): string =>
      found
        .filter((line) => line.sign === " " || line.sign === sign)
        .map(({ text }) => text)
        .join("\n");
    assert.deepEqual([side("-"), side("+")], [before, after]);
  }
});
