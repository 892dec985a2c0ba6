import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { test } from "node:test";
import { skip } from "../../test/sandboxd-harness.ts";
import { cachedSandboxd, forgetOldBuilds } from "./sandboxd-build.ts";

/** Above what Linux gives out. */
const NO_PID = 2 ** 22 + 1;

test("what a killed build has left is removed, what another is writing stays", { skip }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "sandboxd-build-"));
  try {
    const others = [`sandboxd-linux-x64-0.${process.ppid}.new`, "notes.1.new"];
    for (const name of [...others, `sandboxd-linux-x64-0.${NO_PID}.new`]) writeFileSync(join(folder, name), "half");
    const made = await cachedSandboxd(folder);
    assert.deepEqual(readdirSync(folder).sort(), [...others, basename(made)].sort());
    assert.ok(statSync(made).size > 1_000_000);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("of many builds the newest are kept, and whatever else is there", () => {
  const folder = mkdtempSync(join(tmpdir(), "sandboxd-build-"));
  try {
    const builds = Array.from({ length: 5 }, (_, n) => `sandboxd-linux-x64-${String(n).repeat(16)}`);
    for (const [age, name] of [...builds, "notes"].entries()) {
      writeFileSync(join(folder, name), "");
      utimesSync(join(folder, name), 1000 - age, 1000 - age);
    }
    forgetOldBuilds(folder);
    assert.deepEqual(readdirSync(folder).sort(), ["notes", ...builds.slice(0, 3)]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
