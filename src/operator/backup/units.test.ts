import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { clearWorkFolders, FAMILIES, type Unit, withTar } from "./units.ts";

/** The files of a sandbox as an overlay leaves them. */
function sandboxFiles(t: TestContext): { folder: string; unit: Unit } {
  const folder = mkdtempSync(join(tmpdir(), "berth-units-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o755);
  const path = join(folder, "box");
  mkdirSync(join(path, "fs/0/upper/fs/0/work"), { recursive: true });
  writeFileSync(join(path, "fs/0/upper/fs/0/work/kept"), "");
  mkdirSync(join(path, "fs/0/work/work/incompat/volatile"), { recursive: true });
  writeFileSync(join(path, "fs/0/work/work/incompat/volatile/dirty"), "", { mode: 0 });
  const family = FAMILIES.find(({ record }) => record === "record.json");
  assert.ok(family);
  return { folder, unit: { family, name: "box", path, stamp: "" } };
}

/** Root may read everything, so `tar` starts as nobody. */
function asNobody<T>(start: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return start();
  process.seteuid?.(65_534);
  try {
    return start();
  } finally {
    process.seteuid?.(0);
  }
}

test("what an overlay keeps for itself is not packed, and needs no permission", async (t) => {
  const { folder, unit } = sandboxFiles(t);
  const tar = String(
    await asNobody(() => withTar(unit, join(folder, "copies"), { use: buffer, leftOut: assert.fail })),
  );
  assert.ok(tar.includes("fs/0/upper/fs/0/work/kept"), "a folder of the same name in the sandbox is packed");
  assert.ok(tar.includes("fs/0/work/"), "the folder itself is there for the next start");
  assert.ok(!tar.includes("fs/0/work/work"));
});

test("files that a workload closes are left out and told, and all others are packed", async (t) => {
  const { folder, unit } = sandboxFiles(t);
  writeFileSync(join(unit.path, "fs/0/upper/closed"), "", { mode: 0 });
  mkdirSync(join(unit.path, "fs/0/upper/closed-folder"), { mode: 0 });
  const told: string[] = [];
  const reader = { use: buffer, leftOut: (reason: string) => told.push(reason) };
  const tar = String(await asNobody(() => withTar(unit, join(folder, "copies"), reader)));
  assert.ok(tar.includes("fs/0/upper/fs/0/work/kept"));
  assert.deepEqual(told.sort(), [
    "fs/0/upper/closed-folder: Cannot open: Permission denied",
    "fs/0/upper/closed: Cannot open: Permission denied",
  ]);
});

test("folders of backups that were killed are removed, that of one that runs stays", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "berth-units-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const work = join(folder, "runtime/backup-work");
  const pidMax = 2 ** 22; // no process has this number or a larger one
  for (const pid of [process.ppid, pidMax]) mkdirSync(join(work, String(pid), "copy"), { recursive: true });
  await clearWorkFolders(folder);
  assert.deepEqual(readdirSync(work), [String(process.ppid)]);
});

const tmpfsSkip =
  process.getuid?.() === 0 ? false : "needs root, to mount a small file system: run as root to include it";

test("an image is not copied onto a disk that has no room for it", { skip: tmpfsSkip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "berth-units-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=16m", "tmpfs", folder]);
  t.after(() => {
    execFileSync("umount", [folder]);
    rmSync(folder, { recursive: true, force: true });
  });
  const family = FAMILIES.find(({ image }) => image === "image") ?? assert.fail();
  const path = join(folder, "volume");
  mkdirSync(path);
  writeFileSync(join(path, "image"), Buffer.alloc(4 * 2 ** 20, 1));
  const unit: Unit = { family, name: "volume", path, stamp: "" };
  await assert.rejects(withTar(unit, join(folder, "work"), { use: buffer, leftOut: assert.fail }), {
    message: /takes 4\.\d MB .* has room for 0/,
  });
  assert.deepEqual(readdirSync(join(folder, "work")), []);
});
