/** A server that dies while the memory of a workload is copied leaves a workload that goes on under the next server. */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { globSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { need } from "../../src/node/capabilities/need.ts";
import { LocalMachine, localDriverMissing, tracesOf } from "../local/machine.ts";
import { run } from "../local/run.ts";
import { RUNSC_MISSING, testRunsc } from "./binary.ts";

const runsc = localDriverMissing ? null : testRunsc();

test("a copy that a killed server leaves behind ends, and its source goes on", {
  skip: runsc === null ? RUNSC_MISSING : false,
  timeout: 120_000,
}, async () => {
  const machine = new LocalMachine();
  const child = fork(join(import.meta.dirname, "copy-child.ts"), [machine.dataDir, runsc ?? ""]);
  const exited = once(child, "exit");
  // The folder that the checkpoint is written to: the workload stands still by then.
  while (globSync("workloads/*/memory/new", { cwd: machine.dataDir }).length === 0 && child.exitCode === null)
    await pause(1);
  child.kill("SIGKILL");
  await exited;
  const driver = await machine.open({ runsc: runsc ?? "", outbound: "proxy" });
  const box = (await driver.observe("box")) ?? assert.fail("the workload is gone");
  assert.equal(box.state, "running");
  assert.equal((await run(box, "echo on")).output, "on\n");
  assert.deepEqual(await (await need(driver, "snapshots")).list(), []);
  assert.equal((await (await need(driver, "memorySnapshots")).take("box", "whole")).memory, true);
  await driver.stop("kill");
  assert.deepEqual(tracesOf(machine.dataDir), []);
  machine.dispose();
});
