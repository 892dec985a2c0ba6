/**
 * Runs a command of the machine on files whose content is untrusted. The command names files by path and would follow a
 * link that stands in the place of a folder. It therefore runs in a root of its own, where such a link leads nowhere:
 * with the machine's programs and the folders of `mounts`. It keeps the rights to set owners and extended attributes,
 * because an overlay's marks need the machine's own root.
 */
import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { removeTree } from "../../../../lib/remove-tree.ts";
import { failureOf } from "../calls/spawner.ts";
import { CAP_LAST } from "../calls/syscalls.ts";
import { identityFor, type Machine, makeWorkloadDirs } from "../machine/machine.ts";
import { type HostMount, type LaunchPlan, launchSteps, type RootPart } from "../workload/launch-program.ts";
import { readExit } from "../workload/record.ts";

export interface ConfinedCommand {
  /** What is done, for messages: "The copy of a workload's files". */
  title: string;
  script: string;
  mounts: HostMount[];
  /** File of the machine for its standard input. */
  stdin?: string;
}

/** A command that failed, with what it said. */
export class CommandFailed extends Error {}

const MEMORY_MB = 64;
const EXIT_WAIT_MS = 60_000;

/** Returns what the command said. `parts`: a root with the machine's programs. */
export async function runConfined(machine: Machine, parts: RootPart[], command: ConfinedCommand): Promise<string> {
  const dir = mkdtempSync(join(machine.spawner.tempDir, "confined-"));
  makeWorkloadDirs(dir, parts.length);
  try {
    const report = await machine.spawner.start(
      (program) => launchSteps(program, planOf(machine, parts, dir, command)),
      () => false,
    );
    if (report.failure) throw failureOf(command.title, report, "");
    // The exit file is written a moment after the last reporting process has ended.
    for (let waitedMs = 0; !readExit(dir) && waitedMs < EXIT_WAIT_MS; waitedMs++) await delay(1);
    const said = readFileSync(join(dir, "init.log"), "utf8");
    if (readExit(dir)?.exitCode !== 0) throw new CommandFailed(said);
    return said;
  } finally {
    await removeTree(dir);
  }
}

function planOf(
  machine: Machine,
  parts: RootPart[],
  dir: string,
  { script, mounts, stdin }: ConfinedCommand,
): LaunchPlan {
  const identity = identityFor(machine, null);
  return {
    ...{ identity, dir, parts, shared: [], mounts, hostname: "copy", cgroups: [], memoryMb: MEMORY_MB },
    capabilities: capabilitiesOf(identity.kind === "user" ? ~0n : machine.ownCapabilities),
    seccomp: null,
    ...(stdin === undefined ? {} : { stdin }),
    argv: ["/bin/sh", "-c", script],
    env: ["LC_ALL=C", "PATH=/usr/bin:/bin"],
  };
}

const capabilitiesOf = (set: bigint): number[] =>
  Array.from({ length: CAP_LAST + 1 }, (_, capability) => capability).filter((each) => (set >> BigInt(each)) & 1n);
