/** User ids of workloads: two nodes of one machine, each with a data folder of its own, never give out the same ones. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { LocalDriver } from "../../src/node/drivers/local/local-driver.ts";
import type { WorkloadSpec } from "../../src/node/workload.ts";
import { LocalMachine, localDriverMissing, usersMissing } from "./machine.ts";
import { run } from "./run.ts";

const skip = localDriverMissing ?? usersMissing;

const spec = (uid: string, more: Partial<WorkloadSpec> = {}): WorkloadSpec => ({
  uid,
  name: "box",
  image: "berth/base-image:latest",
  env: {},
  limits: { memoryMb: 256, cpus: 1 },
  network: "closed",
  ...more,
});

/** The ids outside of a workload's users, as the kernel tells the workload itself. */
async function idsOf(driver: LocalDriver, uid: string): Promise<number> {
  const { exitCode, output } = await run(await driver.create(spec(uid)), "cat /proc/self/uid_map");
  assert.equal(exitCode, 0, output);
  return Number(output.trim().split(/\s+/)[1]);
}

/** The same for a task, which has no daemon to ask. */
async function idsOfTask(driver: LocalDriver, uid: string): Promise<number> {
  const exec = { argv: ["cat", "/proc/self/uid_map"], alone: true };
  await driver.create(spec(uid, { exec }));
  await driver.waitExit(uid);
  const { bytes } = await driver.readOutput(uid, "stdout", 0, 1000);
  return Number(bytes.toString().trim().split(/\s+/)[1]);
}

test("two nodes of a machine give no user id to a workload of each, also after a restart", { skip }, async (t) => {
  const machines = [new LocalMachine(), new LocalMachine()];
  t.after(() => machines.map((machine) => machine.dispose()));
  const open = () => Promise.all(machines.map((machine) => machine.open({ grade: "mapped" })));
  const before = await open();
  const first = await Promise.all(before.map((driver) => Promise.all([idsOf(driver, "a"), idsOfTask(driver, "task")])));
  await Promise.all(before.map((driver) => driver.stop("keep")));
  const again = await open();
  t.after(() => Promise.all(again.map((driver) => driver.stop("kill"))));
  const later = await Promise.all(again.map((driver) => Promise.all([idsOf(driver, "b"), idsOf(driver, "c")])));
  const [one, two] = [0, 1].map((node) => [...(first[node] ?? []), ...(later[node] ?? [])]);
  assert.deepEqual(
    one?.filter((id) => two?.includes(id)),
    [],
  );
  assert.ok([...(one ?? []), ...(two ?? [])].every((id) => id > 0));
});
