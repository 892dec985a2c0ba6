// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is what is tested
import assert from "node:assert/strict";
import { test } from "node:test";
import { UsageError } from "../lib/usage-error.ts";
import { parseManifests } from "./manifest.ts";

const variables = { env: { SIZE: "10", WORD: "a: [b", ON: "true" }, secrets: {} };
const parse = (text: string) => parseManifests(text, "f.yaml", variables).map(({ kind, body }) => ({ kind, ...body }));

test("several documents, empty ones left out", () => {
  assert.deepEqual(parse("---\nkind: Drive\nmetadata: {name: a}\n---\n---\nkind: Volume\n"), [
    { kind: "Drive", metadata: { name: "a" } },
    { kind: "Volume" },
  ]);
});

test("JSON, alone or as a list", () => {
  assert.deepEqual(parse('{"kind": "Drive", "apiVersion": "x/v1", "spec": {}}'), [{ kind: "Drive", spec: {} }]);
  assert.deepEqual(parse('[{"kind": "A"}, {"kind": "B"}]'), [{ kind: "A" }, { kind: "B" }]);
});

test("a lone variable is a number or boolean as if it stood there; quotes make it text", () => {
  const [manifest] = parse('kind: Drive\na: $SIZE\nb: "$SIZE"\nc: ${SIZE}Mi\nd: $ON\ne: ${NO:null}\n');
  assert.deepEqual(manifest, { kind: "Drive", a: 10, b: "10", c: "10Mi", d: true, e: null });
});

test("a value cannot change the structure around it", () => {
  assert.deepEqual(parse("kind: Drive\na: $WORD\nb: 1\n"), [{ kind: "Drive", a: "a: [b", b: 1 }]);
});

test("keys are left alone", () => assert.deepEqual(parse("kind: Drive\n$SIZE: 1\n"), [{ kind: "Drive", $SIZE: 1 }]));

const REFUSED: [what: string, text: string, says: RegExp][] = [
  ["no kind", "metadata: {name: a}", /f\.yaml, resource 1 has no kind/],
  ["not an object", "kind: A\n---\njust text", /resource 2 is not a resource/],
  ["broken YAML", "kind: [", /f\.yaml: /],
  [
    "aliases that multiply",
    `a: &a [${"x,".repeat(10)}]\nb: &b [${"*a,".repeat(12)}]\nc: &c [${"*b,".repeat(12)}]\nkind: A`,
    /alias/i,
  ],
];
for (const [what, text, says] of REFUSED) {
  test(`${what} is refused`, () => {
    assert.throws(
      () => parse(text),
      (error) => error instanceof UsageError && says.test(error.message),
    );
  });
}
