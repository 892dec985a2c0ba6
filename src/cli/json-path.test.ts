import assert from "node:assert/strict";
import { test } from "node:test";
import { memberAt, parseAssignment, setMember } from "./json-path.ts";

const VALUES: [text: string, value: unknown][] = [
  ["10", 10],
  ["-1.5", -1.5],
  ["007", "007"],
  ["true", true],
  ["null", null],
  ['"10"', "10"],
  ["a=b", "a=b"],
  ['"true"', "true"],
  ['"say \\"hi\\""', 'say "hi"'],
  ['"[1]"', "[1]"],
  ['[{"target":80}]', [{ target: 80 }]],
  ['{"a":{"b":null}}', { a: { b: null } }],
  ["", ""],
];
for (const [text, value] of VALUES) {
  test(`${text || "nothing"} is ${JSON.stringify(value)}`, () =>
    assert.deepEqual(parseAssignment(`a.b=${text}`), ["a.b", value]));
}

test("a list that is not JSON is refused with its path", () =>
  assert.throws(() => parseAssignment("spec.ports=[{target:80}]"), /spec\.ports: this is not JSON/));

test("members are set and read, and what is missing on the way is made", () => {
  const target = {};
  setMember(target, "spec.ports.0.target", 80);
  setMember(target, "spec.size", 1);
  assert.deepEqual(target, { spec: { ports: [{ target: 80 }], size: 1 } });
  assert.equal(memberAt(target, "spec.ports.0.target"), 80);
  assert.equal(memberAt(target, "spec.nothing.there"), undefined);
  assert.equal(memberAt(target, "constructor"), undefined);
});

test("a path cannot reach what all objects share", () => {
  for (const path of ["__proto__.x", "a.__proto__.x", "", "a..b"])
    assert.throws(() => setMember({}, path, 1), /is not a path/);
  setMember({}, "constructor.prototype.polluted", 1);
  assert.equal(Object.hasOwn(Object.prototype, "polluted"), false);
});
