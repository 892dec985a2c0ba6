import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { removeTree } from "./remove-tree.ts";

function place(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "remove-tree-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  mkdirSync(join(dir, "tree"));
  return dir;
}

test("a few files go, and what their links lead to stays", async (t) => {
  const dir = place(t);
  mkdirSync(join(dir, "tree/a/b"), { recursive: true });
  writeFileSync(join(dir, "tree/a/b/file"), "");
  writeFileSync(join(dir, "kept"), "");
  symlinkSync("../kept", join(dir, "tree/link"));
  symlinkSync("..", join(dir, "tree/a/up"));
  await removeTree(join(dir, "tree"));
  assert.deepEqual([existsSync(join(dir, "tree")), existsSync(join(dir, "kept"))], [false, true]);
});

test("what is not there, and what is no folder, is gone afterwards", async (t) => {
  const dir = place(t);
  await removeTree(join(dir, "nothing"));
  symlinkSync("nowhere", join(dir, "dangling"));
  await removeTree(join(dir, "dangling"));
  symlinkSync("nowhere", join(dir, "dangling")); // the removed file's name is free again
});

test("so do many files, and names that are not UTF-8", async (t) => {
  const dir = place(t);
  for (let count = 0; count < 21_000; count++) writeFileSync(join(dir, `tree/${count}`), "");
  await removeTree(join(dir, "tree"));
  assert.equal(existsSync(join(dir, "tree")), false);
  mkdirSync(Buffer.concat([Buffer.from(join(dir, "tree/")), Buffer.from([0xff])]), { recursive: true });
  await removeTree(join(dir, "tree"));
  assert.equal(existsSync(join(dir, "tree")), false);
});

test("so does a folder that lies deeper than a path can say", async (t) => {
  const dir = place(t);
  const name = "d".repeat(100);
  // The full path is too long for the kernel, so the tree is built from the bottom up.
  const script = `for i in $(seq 60); do mkdir ../next && mv ../tree ../next/${name} && mv ../next ../tree; done`;
  mkdirSync(join(dir, "here"));
  execFileSync("sh", ["-e", "-c", script], { cwd: join(dir, "here") });
  await removeTree(join(dir, "tree"));
  assert.equal(existsSync(join(dir, "tree")), false);
});
