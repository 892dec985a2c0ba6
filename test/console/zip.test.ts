import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { differencesOf } from "../../console/lib/differences.ts";
import { zipOf } from "../../console/lib/zip.ts";

test("an archive of the console is read by another program", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "berth-test-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const files = [
    { path: "index.js", bytes: new TextEncoder().encode("listen()") },
    { path: "src/ä.txt", bytes: Uint8Array.from({ length: 70_000 }, (_, at) => at % 251) },
    { path: "empty", bytes: new Uint8Array() },
  ];
  writeFileSync(join(folder, "a.zip"), Buffer.from(await zipOf(files).arrayBuffer()));
  execFileSync(
    "python3",
    ["-c", "import zipfile; z = zipfile.ZipFile('a.zip'); assert z.testzip() is None; z.extractall()"],
    {
      cwd: folder,
    },
  );
  for (const { path, bytes } of files) assert.ok(readFileSync(join(folder, path)).equals(bytes), path);
});

test("two documents differ in members, elements and what is absent", () => {
  const before = { runtime: { memory: 256, envs: [{ name: "A" }] }, enabled: true };
  const after = { runtime: { memory: 512, envs: [{ name: "A" }, { name: "B" }] } };
  assert.deepEqual(differencesOf(before, after), [
    { path: "enabled", before: "true", after: null },
    { path: "runtime.envs[1].name", before: null, after: "B" },
    { path: "runtime.memory", before: "256", after: "512" },
  ]);
  assert.deepEqual(differencesOf(before, before), []);
});
