/** Run by roots.test.ts in a mount namespace of its own: a driver whose data folder is a disk of 900 MB. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { globSync, mkdirSync, readFileSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { call } from "../../src/node/conformance/call.ts";
import { openLocalDriver } from "../../src/node/drivers/local/local-driver.ts";
import type { Observed, WorkloadSpec } from "../../src/node/workload.ts";
import { sandboxdBinary } from "../sandboxd-binary.ts";
import { tracesOf } from "./machine.ts";
import { type Ran, run } from "./run.ts";

const MB = 1024 * 1024;
const KEEP_FREE_MB = 128;
/** Tables of file systems, which no room counts. */
const SLACK_MB = 16;
const [, , folder = ""] = process.argv;
const disk = join(folder, "disk");
mkdirSync(disk);
execFileSync("truncate", ["-s", "900m", join(folder, "disk.img")]);
execFileSync("mkfs.ext4", ["-q", "-m", "0", join(folder, "disk.img")]);
execFileSync("mount", ["-o", "loop", join(folder, "disk.img"), disk]);
const dataDir = join(disk, "runtime");
mkdirSync(dataDir);

const driver = await openLocalDriver({
  ...{ dataDir, brand: "berth", node: "here", outbound: "proxy", keepFreeMb: KEEP_FREE_MB },
  sandboxd: await sandboxdBinary(),
});
const spec = (uid: string, more: Partial<WorkloadSpec> = {}): WorkloadSpec => ({
  ...{ uid, name: uid, image: "berth/base-image:latest", env: {}, network: "closed" },
  limits: { memoryMb: 512, cpus: 1 },
  ...more,
});
const freeMb = (): number => {
  execFileSync("sync", ["-f", disk]);
  const { bavail, bsize } = statfsSync(disk);
  return (bavail * bsize) / MB;
};
const write = (box: Observed, file: string, megabytes: number): Promise<Ran> =>
  run(box, `dd if=/dev/zero of=${file} bs=1M count=${megabytes} conv=fsync`);

try {
  assert.equal((await driver.probe()).roots, "sized");
  const [other, greedy] = [await driver.create(spec("other")), await driver.create(spec("greedy"))];
  await run(greedy, "printf kept > /kept");

  // A root may promise more than the disk has; nobody gets what the server keeps, or what another may still need.
  const full = await write(greedy, "/fill", 100_000);
  assert.notEqual(full.exitCode, 0);
  assert.match(full.output, /No space left on device/);
  const endless = "touch /tmp/writes; while test -e /tmp/writes; do dd if=/dev/zero bs=1M >> /fill; done 2> /dev/null";
  await call(greedy, "/process", { method: "POST", body: { command: endless, name: "endless" } });
  const beside = await write(other, "/mine", 64);
  assert.equal(beside.exitCode, 0, beside.output);
  assert.ok(freeMb() > KEEP_FREE_MB - SLACK_MB, `${freeMb()} MB are left`);

  // What is freed can be used again.
  assert.equal((await run(greedy, "rm /tmp/writes /fill")).exitCode, 0);
  while ((await write(greedy, "/again", 64)).exitCode !== 0) await delay(100);

  // Its own size, in bytes and in files.
  const small = await driver.create(spec("small", { storageMb: 128 }));
  const sizeMb = Number((await run(small, "df --output=size -m / | tail -1")).output);
  assert.ok(sizeMb > 64 && sizeMb <= 128, `${sizeMb} MB`);
  assert.match((await write(small, "/fill", 200)).output, /No space left on device/);
  await run(small, "rm /fill");
  const files = await run(small, "mkdir /many; i=0; while : > /many/$i; do i=$((i+1)); done");
  const made = Number(/many\/(\d+): No space left/.exec(files.output)?.[1]);
  assert.ok(made > 1000 && made <= 16_384, files.output.slice(-200));

  // Snapshots, and a start on the same disk again.
  const snapshots = driver.capabilities.snapshots;
  await snapshots.take("greedy", "of-greedy");
  await driver.destroy("greedy", { keepFiles: true });
  assert.equal((await run(await driver.create(spec("greedy")), "cat /kept")).output, "kept");
  const copy = await driver.create(spec("copy", { snapshot: "of-greedy", storageMb: 64 }));
  assert.equal(
    (await run(copy, "cat /kept; df --output=avail / | tail -1 | grep -v '^ *0$' > /dev/null")).output,
    "kept",
  );
} finally {
  await driver.stop("kill");
}
assert.deepEqual(tracesOf(dataDir), []);
const devices = globSync("/sys/block/loop*/loop/backing_file").filter((file) =>
  readFileSync(file, "utf8").includes(dataDir),
);
assert.deepEqual(devices, []);
