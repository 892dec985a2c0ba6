import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { writePage } from "./page-file.ts";

test("a page file holds what was written last, whatever its size was", () => {
  const dir = mkdtempSync(join(tmpdir(), "page-file-"));
  const file = join(dir, "record.json");
  try {
    const inode: number[] = [];
    for (const length of [3, 4000, 10, 4094, 4095, 20_000, 5, 7]) {
      const value = "é".repeat(length / 2) + "x".repeat(length % 2);
      writePage(file, JSON.stringify(value));
      assert.equal(JSON.parse(readFileSync(file, "utf8")), value);
      inode.push(statSync(file).ino);
    }
    assert.equal(inode[0], inode[3], "what fits a page is written in place");
    assert.deepEqual(readdirSync(dir), ["record.json"]);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
