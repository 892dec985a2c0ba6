/**
 * Copies the files that a workload wrote; their content is untrusted. `cp` names its sources by path and would follow a
 * link that has replaced a folder meanwhile. It therefore runs in a root of its own, where such a link leads nowhere:
 * with the machine's programs, the source (read-only) and the target. It keeps the rights to set owners and extended
 * attributes, because an overlay's marks need the machine's own root.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { removeTree } from "../../../../lib/remove-tree.ts";
import { failureOf } from "../calls/spawner.ts";
import { CAP_LAST } from "../calls/syscalls.ts";
import { identityFor, type Machine, makeWorkloadDirs } from "../machine/machine.ts";
import { type LaunchPlan, launchSteps, type RootPart } from "../workload/launch-program.ts";
import { readExit } from "../workload/record.ts";

/** Creates `to`. */
export type CopyTree = (from: string, to: string) => Promise<void>;

/** A failed copy, with the message of `cp`. Paths in it begin with COPY_SOURCE or the target's path. */
export class CopyFailed extends Error {}

export const COPY_SOURCE = "/source";
const TARGET = "/target";
const PROGRAMS = ["/usr/bin/cp", "/bin/cp"];
/** -a keeps owners, times, extended attributes and whiteouts. */
const OPTIONS = ["-a", "--reflink=auto", "-T"];
const MEMORY_MB = 64;
const EXIT_WAIT_MS = 60_000;

/** `parts`: a root with the machine's programs. */
export const treeCopier =
  (machine: Machine, parts: RootPart[]): CopyTree =>
  async (from, to) => {
    mkdirSync(to, { mode: 0o700 });
    const dir = mkdtempSync(join(machine.spawner.tempDir, "copy-"));
    makeWorkloadDirs(dir, parts.length);
    try {
      const report = await machine.spawner.start(
        (program) => launchSteps(program, planOf(machine, parts, dir, { from, to })),
        () => false,
      );
      if (report.failure) throw failureOf("The copy of a workload's files", report, "");
      // The exit file is written a moment after the last reporting process has ended.
      for (let waitedMs = 0; !readExit(dir) && waitedMs < EXIT_WAIT_MS; waitedMs++) await delay(1);
      if (readExit(dir)?.exitCode !== 0) throw new CopyFailed(readFileSync(join(dir, "init.log"), "utf8"));
    } finally {
      await removeTree(dir);
    }
  };

function planOf(
  machine: Machine,
  parts: RootPart[],
  dir: string,
  { from, to }: { from: string; to: string },
): LaunchPlan {
  const program = PROGRAMS.find((path) => existsSync(path)) ?? "/bin/cp";
  const identity = identityFor(machine, null);
  return {
    identity,
    dir,
    parts,
    shared: [],
    mounts: [
      { base: from, path: COPY_SOURCE, readOnly: true },
      { base: to, path: TARGET, readOnly: false },
    ],
    hostname: "copy",
    cgroups: [],
    memoryMb: MEMORY_MB,
    capabilities: capabilitiesOf(identity.kind === "user" ? ~0n : machine.ownCapabilities),
    seccomp: null,
    argv: [program, ...OPTIONS, COPY_SOURCE, TARGET],
    env: ["LC_ALL=C"],
  };
}

const capabilitiesOf = (set: bigint): number[] =>
  Array.from({ length: CAP_LAST + 1 }, (_, capability) => capability).filter((each) => (set >> BigInt(each)) & 1n);
