/** Harness of a driver whose workloads have a shell, for the conformance suite. */
import type { Harness } from "../../src/node/conformance/harness.ts";
import type { Driver } from "../../src/node/driver.ts";
import type { Observed } from "../../src/node/workload.ts";
import { run } from "./run.ts";

export interface ShellHarnessOptions {
  /** Starts a driver on the machine; called again for each restart. */
  open(): Promise<Driver>;
  neighbour(): Promise<Harness>;
  /** Runs after the last driver has stopped: looks for traces and removes the machine. */
  ended?(): Promise<void> | void;
}

export async function shellHarness({ open, neighbour, ended }: ShellHarnessOptions): Promise<Harness> {
  const made: Harness = {
    driver: await open(),
    image: "berth/base-image:latest",
    read: (workload, path) => output(workload, `cat ${path}`),
    write: async (workload, path, text) => {
      await output(workload, `printf %s '${text}' > ${path}`);
    },
    ownFiles: ["/tmp/left", "/left"],
    restart: async (workloads = "keep") => {
      await made.driver.stop(workloads);
      made.driver = await open();
      return made.driver;
    },
    neighbour,
    dispose: async () => {
      await made.driver.stop("kill");
      await ended?.();
    },
  };
  return made;
}

async function output(workload: Observed, command: string): Promise<string> {
  const ran = await run(workload, command);
  if (ran.exitCode !== 0) throw new Error(ran.output);
  return ran.output;
}
