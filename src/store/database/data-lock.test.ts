import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { lockFolder } from "./data-lock.ts";

test("a lock file is its owner's alone, also one of before, and locks out the second", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "data-lock-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "old.lock"), "");
  chmodSync(join(folder, "old.lock"), 0o644);
  for (const name of ["old.lock", "new.lock"]) {
    const lock = lockFolder(folder, name) ?? assert.fail(name);
    t.after(() => lock.stop());
    assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600, name);
    assert.equal(lockFolder(folder, name), null, name);
    await lock.stop();
    const next = lockFolder(folder, name) ?? assert.fail(name);
    await next.stop();
  }
});
