import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { onBase } from "./base-below.ts";

const digest = (letter: string): string => `sha256:${letter.repeat(64)}`;

test("a sandbox moves to the base image of today where that is laid out in the same way", (t) => {
  const dir = mkdtempSync(join(tmpdir(), "berth-base-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const root = (letter: string): string => join(dir, "base", letter.repeat(16), "root");
  for (const letter of ["a", "b"]) mkdirSync(root(letter), { recursive: true });
  const before = [
    { at: "/", lowers: [dir, root("a")] },
    { at: "/usr", lowers: ["/usr"] },
  ];
  assert.equal(onBase(before, digest("a"), digest("a")), before, "the same base");
  assert.deepEqual(onBase(before, digest("a"), digest("b")), [{ at: "/", lowers: [dir, root("b")] }, before[1]]);
  assert.equal(onBase(before, digest("a"), digest("c")), before, "a base that is laid out otherwise");
  const image = [{ at: "/", lowers: [dir] }];
  assert.equal(onBase(image, digest("a"), digest("b")), image, "layers of an image never change");
});
