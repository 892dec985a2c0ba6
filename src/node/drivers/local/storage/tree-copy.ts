/**
 * Copies the files that a workload wrote, whatever its owner put there. `cp` names its sources by path and follows a link
 * that has taken the place of a folder meanwhile, so it runs where such a link leads nowhere: in a root of its own with
 * the machine's programs, the source (read-only) and the target. It keeps the rights to owners and extended attributes,
 * because an overlay's marks are the machine's own.
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

/** `to` is made. */
export type CopyTree = (from: string, to: string) => Promise<void>;

/** A copy that failed, with what `cp` said. Paths in it begin with COPY_SOURCE or the target's. */
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
      // Its end is noted a moment after nobody is left to report.
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
