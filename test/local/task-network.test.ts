/** Where the machine gives each workload a network interface, a command without a daemon waits for its own. */
import assert from "node:assert/strict";
import { existsSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { openImageStore, resolveImage } from "../../src/node/drivers/local/images/images.ts";
import { findCgroups, removeCgroupHost } from "../../src/node/drivers/local/machine/cgroup.ts";
import { openMachine } from "../../src/node/drivers/local/machine/machine.ts";
import type { Nat } from "../../src/node/drivers/local/network/nat.ts";
import { Tasks } from "../../src/node/drivers/local/tasks/tasks.ts";
import { sandboxdBinary } from "../sandboxd-binary.ts";
import { LocalMachine, localDriverMissing } from "./machine.ts";

/** The machine's tools that make interfaces are not everywhere; who waits for whom is the same without them. */
async function withTasks(
  attach: Nat["attach"],
  work: (tasks: Tasks, start: (uid: string) => ReturnType<Tasks["start"]>) => Promise<void>,
) {
  const { dataDir: dir, dispose } = bound(new LocalMachine());
  const cgroups = findCgroups(`berth-network-${process.pid}`);
  const image = resolveImage(
    openImageStore({ dir: join(dir, "images"), brand: "berth", resolvConf: "" }),
    "base-image",
  );
  assert.ok(image);
  const machine = await openMachine(dir, await sandboxdBinary(), image, cgroups);
  const nat: Nat = {
    attach,
    own: () => {},
    adopt: () => {},
    release: async () => {},
    resolvConf: "",
    traffic: () => ({ sentBytes: 0, receivedBytes: 0 }),
    stop: async () => {},
  };
  const context = { node: "here", machine, nat, disks: null, onDoor: { platform: () => {}, egress: () => {} } };
  const { executable } = machine.spawner;
  const tasks = new Tasks({ context, dir: join(dir, "tasks"), executable, freeSlot: () => 0, onWarning: assert.fail });
  await tasks.open();
  const start = (uid: string) => {
    const exec = { argv: ["readlink", "/proc/self/ns/net"], alone: true };
    const limits = { memoryMb: 64, cpus: 1 };
    const spec = { uid, name: "box", image: "base-image", env: {}, limits, network: "outbound", exec } as const;
    const { parts, env, workDir } = image;
    return tasks.start({ spec, image, parts, mounts: [], env, workDir });
  };
  try {
    await work(tasks, start);
  } finally {
    await tasks.stop();
    await machine.spawner.stop();
    removeCgroupHost(cgroups);
    dispose();
  }
}

const bound = (machine: LocalMachine) => ({ dataDir: machine.dataDir, dispose: () => machine.dispose() });

describe("the network of a command without a daemon", { skip: localDriverMissing ?? false }, () => {
  test("it begins when its interface is there, in the network that has it", async () => {
    const attached = Promise.withResolvers<string>();
    const given = Promise.withResolvers<void>();
    const attach = async (pid: number): Promise<void> => {
      attached.resolve(readlinkSync(`/proc/${pid}/ns/net`));
      await given.promise;
    };
    await withTasks(attach, async (_, start) => {
      let begun = false;
      const starting = start("waits").finally(() => {
        begun = true;
      });
      const network = await attached.promise;
      assert.equal(begun, false);
      given.resolve();
      const task = await starting;
      await task.waitExit();
      const { bytes } = await task.readOutput("stdout", 0, 100);
      assert.deepEqual([task.observe().exitCode, bytes.toString().trim()], [0, network]);
      await task.destroy(0);
    });
  });

  test("it does not begin when there is none to have", async () => {
    let watcher = 0;
    const attach = async (pid: number): Promise<void> => {
      watcher = pid;
      throw new Error("no interface");
    };
    await withTasks(attach, async (_, start) => {
      await assert.rejects(start("fails"), /no interface/);
      while (existsSync(`/proc/${watcher}/ns/net`)) await delay(5);
    });
  });
});
