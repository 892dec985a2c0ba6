/** Disks of workloads end: by their own size, and before the disk of the server does. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";
import { sandboxdBinary } from "../sandboxd-binary.ts";
import { localDriverMissing, sizesMissing } from "./machine.ts";

const TRIAL = "truncate -s 16m $0/i && mkfs.ext4 -q $0/i && mkdir $0/m && mount -o loop $0/i $0/m";

function missing(): string | false {
  if (localDriverMissing || sizesMissing) return localDriverMissing ?? sizesMissing;
  const folder = mkdtempSync(join(tmpdir(), "berth-loop-"));
  const able = spawnSync("unshare", ["-m", "sh", "-c", TRIAL, folder]).status === 0;
  rmSync(folder, { recursive: true, force: true });
  return able ? false : "needs mkfs.ext4 and loop devices: run as root on a machine that has them to include it";
}
const skip = missing();

before(() => (skip ? null : sandboxdBinary()));

test("workloads that write without end", { skip }, async (t) => {
  // In a mount namespace of its own: the small disk goes with the process, however that ends.
  const folder = mkdtempSync(join(tmpdir(), "berth-roots-"));
  const args = ["-m", process.execPath, "test/local/roots-child.ts", folder];
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
