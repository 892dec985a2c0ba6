import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { missingPackages } from "./packages.ts";

test("a package is missing when its program is in none of the folders, or is no program", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "berth-packages-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of ["ip", "mount", "nsenter", "mkfs.ext4"]) writeFileSync(join(folder, name), "", { mode: 0o755 });
  assert.deepEqual(missingPackages([join(folder, "nowhere"), folder]), ["nftables"]);
  writeFileSync(join(folder, "nft"), "", { mode: 0o644 });
  assert.deepEqual(missingPackages([folder]), ["nftables"]);
});
