/** What the schema of a kind says about a YAML text. */
import assert from "node:assert/strict";
import { test } from "node:test";
import sandbox from "../../console/generated/schemas/sandbox.json" with { type: "json" };
import {
  aboutOf,
  membersOf,
  parentsAt,
  readMembers,
  schemaAt,
  unknownMembers,
  valuesOf,
} from "../../console/lib/schema-help.ts";

const lines = (text: string): string[] => text.split("\n");

const TEXT = `metadata:
  name: box
  labels:
    anything: goes
spec:
  runtime:
    memry: 256
    envs:
    - name: A
      valeu: |
        spec: this is text
        envs: and this
    - { name: B }
  # colour: no member
  colour: red
"quoted": 1`;

test("members know what is around them: lists at both indentations, quoted names, texts over several lines", () => {
  const found = readMembers(lines(TEXT)).map(({ name, parents }) => [...parents, name].join("."));
  assert.deepEqual(found, [
    ...["metadata", "metadata.name", "metadata.labels", "metadata.labels.anything"],
    ...["spec", "spec.runtime", "spec.runtime.memry", "spec.runtime.envs"],
    ...["spec.runtime.envs.[].name", "spec.runtime.envs.[].valeu", "spec.colour", "quoted"],
  ]);
});

test("members that the schema does not know are found, and names that people choose are not", () => {
  assert.deepEqual(
    unknownMembers(lines(TEXT), sandbox).map(({ name, line, column }) => [name, line, column]),
    [
      ["memry", 6, 4],
      ["valeu", 9, 6],
      ["colour", 14, 2],
      ["quoted", 15, 0],
    ],
  );
  assert.deepEqual(unknownMembers(lines(TEXT), undefined), []);
});

test("what can be written at a place, and what it means", () => {
  const text = lines("spec:\n  runtime:\n    envs:\n      - name: A\n        ");
  assert.deepEqual(parentsAt(text, 4, 8), ["spec", "runtime", "envs", "[]"]);
  assert.deepEqual(parentsAt(text, 4, 4), ["spec", "runtime"]);
  const runtime = membersOf(schemaAt(sandbox, ["spec", "runtime"])).map(({ name }) => name);
  assert.ok(runtime.includes("image") && runtime.includes("memory"));
  assert.deepEqual(valuesOf(schemaAt(sandbox, ["spec", "enabled"])), ["true", "false"]);
  assert.match(aboutOf(schemaAt(sandbox, ["spec", "vpc"])).about, /VPC/);
  assert.equal(schemaAt(sandbox, ["spec", "nothing", "here"]), null);
});

test("a line of any length is read once: no expression goes back over it", () => {
  const long = 200_000;
  const text = ["a".padEnd(long), "- ".repeat(long / 100), `- ${" ".repeat(long)}`, `"${"'".repeat(long)}`, "last: 1"];
  assert.deepEqual(
    readMembers(text).map(({ name }) => name),
    ["last"],
  );
});
