import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { namesIn, Tree } from "./tree.ts";

test("a tree enters no link, whatever was looked at before, and no name leads out of it", () => {
  const dir = mkdtempSync(join(tmpdir(), "berth-tree-"));
  try {
    for (const name of ["tree", "outside"]) mkdirSync(join(dir, name));
    writeFileSync(join(dir, "outside/precious"), "kept");
    symlinkSync(join(dir, "outside"), join(dir, "tree/folder"));
    symlinkSync(join(dir, "outside/precious"), join(dir, "tree/file"));
    const tree = new Tree(join(dir, "tree"));
    assert.throws(() => tree.open(tree.root, "folder"), /ENOTDIR|ELOOP/);
    assert.equal(tree.find(["folder"]), null);
    assert.throws(() => tree.createFile(tree.root, "file"), /EEXIST|ELOOP/);
    tree.remove(tree.root, "folder", () => undefined);
    tree.close();
    assert.throws(() => new Tree(join(dir, "tree/file")), /ENOTDIR|ELOOP/);
    assert.equal(readFileSync(join(dir, "outside/precious"), "utf8"), "kept");
    for (const path of ["..", "a/../../b", "/../x"])
      assert.throws(() => namesIn(path, { pathBytesMax: 100, depthMax: 10 }), /leads out/);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
