// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is what is tested
import assert from "node:assert/strict";
import { test } from "node:test";
import { UsageError } from "../lib/usage-error.ts";
import { interpolate, isReference } from "./interpolate.ts";

const variables = { env: { NAME: "n", EMPTY: "", A_1: "x" }, secrets: { TOKEN: "t", NAME: "secret-n" } };

const CASES: [text: string, result: string][] = [
  ["plain", "plain"],
  ["$A_1", "x"],
  ["${A_1}y", "xy"],
  ["a-$A_1-b", "a-x-b"],
  ["${MISSING:d}", "d"],
  ["${MISSING:}", ""],
  ["${MISSING:http://h:1/?a=b}", "http://h:1/?a=b"],
  ["${EMPTY:d}", ""],
  ["$secrets.TOKEN/${secrets.TOKEN}", "t/t"],
  ["$NAME", "secret-n"],
  ["costs $5 and $$A_1", "costs $5 and $A_1"],
  ["$(date) ${} ${1}", "$(date) ${} ${1}"],
];
for (const [text, result] of CASES) {
  test(`'${text}' becomes '${result}'`, () => assert.equal(interpolate(text, variables), result));
}

for (const text of ["$MISSING", "${MISSING}", "$secrets.A_1"]) {
  test(`'${text}' is refused, because it is not set`, () => {
    assert.throws(() => interpolate(text, variables), UsageError);
  });
}

test("only a lone reference may become a number", () => {
  for (const lone of ["$A", "${A}", "${A:5}"]) assert.ok(isReference(lone), lone);
  for (const mixed of ["$A ", "x$A", "$A$B", "$$", "5"]) assert.ok(!isReference(mixed), mixed);
});
