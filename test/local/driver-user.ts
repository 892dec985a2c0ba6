/** The conformance suite as a user without rights; run by test/local/driver.test.ts, as root in a process of its own. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { lstatSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { driverConformance } from "../../src/node/conformance/conformance.ts";
import { Canary } from "../canary.ts";
import { dockerSave, tar } from "../image-archive.ts";
import { LONG } from "../long.ts";
import { LocalMachine, localCandidate } from "./machine.ts";
import { run } from "./run.ts";

// In a process of its own it comes after the other grades.
const again = import.meta.main && !LONG;
driverConformance("local (user)", { ...localCandidate({ grade: "user" }), again });

test("the user who runs the server removes its data folder with plain rm", async (t) => {
  const machine = new LocalMachine();
  const driver = await machine.open({ grade: "user" });
  t.after(() => driver.stop("kill"));
  const made = await driver.create({
    uid: "box",
    name: "box",
    image: "berth/base-image:latest",
    env: {},
    limits: { memoryMb: 128, cpus: 1 }, // less than the daemon's runtime sets aside
    network: "outbound",
  });
  assert.equal((await run(made, "touch /usr/mine /mine && echo made")).output, "made\n");
  assert.ok(
    ((await driver.capabilities.images.bytes("berth/base-image")) ?? 0) > 1e6,
    "also where folders of /usr are closed",
  );
  const { status, stderr } = spawnSync("rm", ["-rf", machine.dataDir], { encoding: "utf8" });
  assert.deepEqual([status, stderr], [0, ""]);
});

test("a folder that is closed to its owner is in a snapshot, with its mode and its size", async (t) => {
  const machine = new LocalMachine();
  const driver = await machine.open({ grade: "user" });
  t.after(async () => {
    await driver.stop("kill");
    spawnSync("chmod", ["-R", "u+rwx", machine.dataDir]);
    machine.dispose();
  });
  const spec = {
    uid: "box",
    name: "box",
    image: "berth/base-image:latest",
    env: {},
    limits: { memoryMb: 128, cpus: 1 },
    network: "closed" as const,
  };
  const made = await driver.create(spec);
  const shut = "mkdir /shut && head -c 3000000 /dev/urandom > /shut/file && chmod 0 /shut && echo shut";
  assert.equal((await run(made, shut)).output, "shut\n");
  const { id, sizeBytes } = await driver.capabilities.snapshots.take("box", "closed");
  assert.ok(sizeBytes > 2_900_000, String(sizeBytes));
  assert.equal(lstatSync(join(machine.dataDir, "snapshots", id, "0/shut")).mode & 0o777, 0);
  const fork = await driver.create({ ...spec, uid: "fork", name: "fork", snapshot: id });
  assert.equal((await run(fork, "stat -c %a /shut && chmod 700 /shut && wc -c < /shut/file")).output, "0\n3000000\n");
});

test("an image is unpacked in a cage without root, too", async (t) => {
  const machine = new LocalMachine();
  const driver = await machine.open({ grade: "user" });
  t.after(async () => {
    await driver.capabilities.images.remove("team/app:1"); // folders in it are closed even to their owner
    await driver.stop("kill");
    machine.dispose();
  });
  using canary = new Canary();
  const layer = tar([
    { path: "a/b/", type: "5", mode: 0o555 },
    { path: "a/b/.wh.precious" },
    { path: "a/b/kept", content: "kept" },
    { path: "c/", type: "5", mode: 0o755 },
    { path: "c/.wh.precious" },
    { path: "c", type: "2", link: canary.dir },
    { path: "d/.wh.gone" },
  ]);
  const file = join(machine.dataDir, "image.tar");
  writeFileSync(file, dockerSave([layer]));
  assert.equal((await driver.capabilities.images.load(file, "team/app:1")).sizeBytes, 4);
  canary.assertUntouched();
});
