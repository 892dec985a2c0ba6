/** The path of a mount names something else while its file system is frozen: the file system is thawed all the same. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { clearKilledBackups } from "../../src/composition/backups.ts";
import type { Config } from "../../src/config.ts";
import { copyFrozen } from "../../src/node/drivers/local/storage/frozen-copy.ts";
import { deviceAt, makeImage, mountImage, unmountLeftovers } from "../../src/node/drivers/local/storage/loop-image.ts";

const skip =
  process.getuid?.() === 0 && existsSync("/dev/loop-control")
    ? false
    : "needs root and loop devices, to mount an image";

async function mountedAt(folder: string): Promise<string> {
  const at = join(folder, "mnt");
  mkdirSync(at, { recursive: true });
  await makeImage(join(folder, "image"), 16);
  await mountImage(join(folder, "image"), at);
  return at;
}

test("a mount whose folder is renamed during the copy is not left frozen", { skip }, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "berth-frozen-"));
  t.after(async () => {
    await unmountLeftovers(dir);
    rmSync(dir, { recursive: true, force: true });
  });
  const at = await mountedAt(join(dir, "before"));
  // The copy of a pipe lasts until the test has written to it.
  const pipe = join(dir, "pipe");
  execFileSync("mkfifo", [pipe]);
  const copy = copyFrozen(pipe, join(dir, "copy"), at);
  const writer = await open(pipe, "w"); // waits until `cp` reads, which is after the freeze
  renameSync(join(dir, "before"), join(dir, "after"));
  mkdirSync(at, { recursive: true });
  await writer.close();
  await copy.catch(() => {}); // fails where the path was thawed instead of the descriptor
  // Thawing fails for a file system that is not frozen.
  assert.throws(() => execFileSync("fsfreeze", ["--unfreeze", join(dir, "after/mnt")], { stdio: "pipe" }));
  writeFileSync(join(dir, "after/mnt/file"), "thawed");
});

test("the mount of a backup that was killed with its server is gone after the next start", { skip }, async (t) => {
  const data = mkdtempSync(join(tmpdir(), "berth-killed-"));
  t.after(async () => {
    await unmountLeftovers(data);
    rmSync(data, { recursive: true, force: true });
  });
  // No process has this id: it is above the largest that Linux gives.
  const dead = join(data, "runtime/backup-work/4194305");
  const alive = join(data, `runtime/backup-work/${process.ppid}`);
  mkdirSync(alive, { recursive: true });
  const at = await mountedAt(dead);
  assert.notEqual(deviceAt(at), null);
  const log = { error: (fields: object) => assert.fail(JSON.stringify(fields)) };
  await clearKilledBackups({ config: { data } as Config, log: log as never });
  assert.equal(deviceAt(at), null);
  assert.deepEqual([existsSync(dead), existsSync(alive)], [false, true]);
});
