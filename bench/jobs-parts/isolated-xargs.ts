/**
 * What running tasks is measured against: `xargs -P` that starts the same command with the same launcher, in the same
 * namespaces, files, control groups and filter, with nobody who counts, reports or tries again.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { removeTree } from "../../src/lib/remove-tree.ts";
import { PROGRAM_BASE } from "../../src/node/drivers/local/calls/stepper.ts";
import { openImageStore, resolveImage } from "../../src/node/drivers/local/images/images.ts";
import {
  findCgroups,
  procsFiles,
  removeCgroup,
  removeCgroupHost,
} from "../../src/node/drivers/local/machine/cgroup.ts";
import { openMachine } from "../../src/node/drivers/local/machine/machine.ts";
import { makeTaskSlot, taskPlan } from "../../src/node/drivers/local/tasks/task-plan.ts";
import { TaskProgram } from "../../src/node/drivers/local/tasks/task-program.ts";

const run = promisify(execFile);

export interface IsolatedXargs {
  /** Runs the command so many times. */
  run(count: number): Promise<void>;
  close(): Promise<void>;
}

export async function openIsolatedXargs(atOnce: number, argv: string[], sandboxd: string): Promise<IsolatedXargs> {
  const dir = mkdtempSync(join(tmpdir(), "bench-xargs-"));
  const cgroups = findCgroups(`bench-xargs-${process.pid}`);
  const images = openImageStore({ dir: join(dir, "images"), brand: "berth", resolvConf: "" });
  const image = resolveImage(images, "base-image");
  if (!image) throw new Error("there is no base image");
  const machine = await openMachine(dir, sandboxd, image, cgroups);
  const limits = { memoryMb: 128, cpus: 0.25 };
  const order = {
    spec: {
      uid: "x",
      name: "noop",
      image: "base-image",
      env: {},
      limits,
      network: "outbound",
      exec: { argv },
    } as const,
    image,
    parts: image.parts,
    mounts: [],
    env: image.env,
    workDir: image.workDir,
  };
  const slots = Array.from({ length: atOnce }, (_, number) => makeTaskSlot(machine, dir, number, limits));
  for (const slot of slots) {
    const plan = { ...taskPlan({ machine, nat: null, dir }, order, slot), cgroups: procsFiles(slot.cgroup) };
    const program = new TaskProgram(machine.spawner.arch, PROGRAM_BASE, plan);
    const command = { number: 1, note: "{}", endsAtMs: null, argv, env: image.env, workDir: image.workDir };
    writeFileSync(join(dir, `program-${slot.number}`), program.encode(command));
  }
  const script = `exec "${machine.spawner.executable}" 3< "${dir}/program-$SLOT"`;
  return {
    async run(count) {
      const args = ["-P", String(atOnce), "--process-slot-var=SLOT", "-I{}", "sh", "-c", script];
      const child = run("xargs", args, { encoding: "latin1", maxBuffer: 2 ** 30 });
      child.child.stdin?.end("x\n".repeat(count));
      const { stdout } = await child.catch((error: { code: number }) => {
        throw new Error(`xargs ended with ${error.code}`);
      });
      // Each reports as it does to the server: a reference that runs nothing would be easy to reach.
      const ended = stdout.split("ENDED\0\0\0").slice(1);
      const well = ended.filter((report) => report.slice(8, 16) === "\0".repeat(8)).length;
      if (well !== count) throw new Error(`${well} of ${count} commands ended well under xargs`);
    },
    async close() {
      for (const { cgroup } of slots) await removeCgroup(cgroup);
      removeCgroupHost(cgroups);
      await machine.spawner.stop();
      await removeTree(dir);
    },
  };
}
