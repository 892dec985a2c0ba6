import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";

const TRIAL = "mount -t tmpfs -o size=1m tmpfs /mnt";
const able = spawnSync("unshare", ["-m", "sh", "-c", TRIAL]).status === 0;
const skip = able ? false : "needs root and `mount`: run as root, where file systems may be mounted, to include it";

suite("a full disk", { concurrency: true, skip }, () => {
  for (const what of ["bytes", "inodes"])
    test(`(${what}): deletes, restarts and down work, new work is refused`, async (t) => {
      // In a mount namespace of its own: the small file system goes with the process, however that ends.
      const folder = mkdtempSync(join(tmpdir(), "berth-disk-"));
      const args = ["-m", process.execPath, "test/attacks/disk-child.ts", what, folder];
      const child = spawn("unshare", args, { stdio: ["ignore", "pipe", "pipe"] });
      t.after(() => {
        child.kill("SIGKILL");
        rmSync(folder, { recursive: true, force: true });
      });
      let output = "";
      for (const stream of [child.stdout, child.stderr]) {
        stream.on("data", (chunk: Buffer) => {
          output += chunk;
        });
      }
      const [code] = await once(child, "close");
      assert.equal(code, 0, output);
    });
});
