import assert from "node:assert/strict";
import { test } from "node:test";
import { parseReference, referenceText, spellingsOf } from "./image-reference.ts";

const DIGEST = `sha256:${"a".repeat(64)}`;

const SAME: readonly (readonly [string, string])[] = [
  ["python", "docker.io/library/python:latest"],
  ["python:3.12", "docker.io/library/python:3.12"],
  ["docker.io/python:3.12", "docker.io/library/python:3.12"],
  ["index.docker.io/library/python", "docker.io/library/python:latest"],
  ["acme/tool:1", "docker.io/acme/tool:1"],
  ["ghcr.io/acme/tool", "ghcr.io/acme/tool:latest"],
  ["GHCR.io/acme/tool:V1", "ghcr.io/acme/tool:V1"],
  ["localhost/tool", "localhost/tool:latest"],
  ["127.0.0.1:5000/a/b/c:1.2-x", "127.0.0.1:5000/a/b/c:1.2-x"],
  ["[::1]:5000/tool", "[::1]:5000/tool:latest"],
  [`python@${DIGEST}`, `docker.io/library/python@${DIGEST}`],
  [`ghcr.io/acme/tool:1@${DIGEST}`, `ghcr.io/acme/tool@${DIGEST}`],
];

test("every spelling of a name leads to one text", () => {
  for (const [written, canonical] of SAME) {
    const parsed = parseReference(written);
    assert.ok(parsed, written);
    assert.equal(referenceText(parsed), canonical);
    assert.deepEqual(parseReference(canonical), { ...parsed, ...(parsed.digest ? { tag: "latest" } : {}) });
  }
});

test("what is no name of an image is none", () => {
  const wrong = [
    ...["", "/", "a//b", "A/b", "Tool", "tool:", "tool:a b", "tool:1:2", "-tool", "tool-", "a..b", "a/../b", ".."],
    ...["http://ghcr.io/a", "user@ghcr.io/a", "ghcr.io/", "ghcr.io:x/a", "-ghcr.io/a", "tool@sha256:abc", "tool@md5:1"],
    ...[
      `tool@${DIGEST}@${DIGEST}`,
      "a b",
      "tool\n",
      "tool?x",
      "tool#x",
      "tool%2f",
      `a/${"b".repeat(600)}`,
      "x.y:1/../z",
    ],
  ];
  for (const text of wrong) assert.equal(parseReference(text), null, JSON.stringify(text));
});

test("the spellings of a repository of Docker Hub lead back to it", () => {
  const found = parseReference("python");
  assert.ok(found);
  const spellings = spellingsOf(found);
  assert.ok(["python", "library/python", "docker.io/python"].every((each) => spellings.includes(each)));
  for (const each of spellings) assert.deepEqual(parseReference(each), found, each);
});
