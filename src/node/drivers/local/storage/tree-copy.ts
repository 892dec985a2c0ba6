/**
 * Copies the files that a workload wrote; their content is untrusted. `cp` names its sources by path and would follow a
 * link that has replaced a folder meanwhile. It therefore runs in a root of its own, where such a link leads nowhere:
 * with the machine's programs, the source (read-only) and the target. It keeps the rights to set owners and extended
 * attributes, because an overlay's marks need the machine's own root.
 */
import { mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { removeTree } from "../../../../lib/remove-tree.ts";
import { failureOf } from "../calls/spawner.ts";
import { CAP_LAST } from "../calls/syscalls.ts";
import { identityFor, type Machine, makeWorkloadDirs } from "../machine/machine.ts";
import { type LaunchPlan, launchSteps, type RootPart } from "../workload/launch-program.ts";
import { readExit } from "../workload/record.ts";

/** Creates `to` and returns the size of the copy in bytes. */
export type CopyTree = (from: string, to: string) => Promise<number>;

/** A failed copy, with the message of `cp`. Paths in it begin with COPY_SOURCE or the target's path. */
export class CopyFailed extends Error {}

export const COPY_SOURCE = "/source";
export const COPY_TARGET = "/target";
/** -a keeps owners, times, extended attributes and whiteouts. */
const COPY = `cp -a --reflink=auto -T ${COPY_SOURCE} ${COPY_TARGET}`;
/** Measured in the same place: a server without root may not look into folders that are closed to their owner. */
const MEASURE = `du -sk ${COPY_TARGET}`;
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
      const said = readFileSync(join(dir, "init.log"), "utf8");
      if (readExit(dir)?.exitCode !== 0) throw new CopyFailed(said);
      // The size is the last line.
      return Number.parseInt(said.trimEnd().split("\n").at(-1) ?? "", 10) * 1024;
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
  const identity = identityFor(machine, null);
  return {
    identity,
    dir,
    parts,
    shared: [],
    mounts: [
      { base: from, path: COPY_SOURCE, readOnly: true },
      { base: to, path: COPY_TARGET, readOnly: false },
    ],
    hostname: "copy",
    cgroups: [],
    memoryMb: MEMORY_MB,
    capabilities: capabilitiesOf(identity.kind === "user" ? ~0n : machine.ownCapabilities),
    seccomp: null,
    argv: ["/bin/sh", "-c", `${COPY} && ${MEASURE}`],
    env: ["LC_ALL=C", "PATH=/usr/bin:/bin"],
  };
}

const capabilitiesOf = (set: bigint): number[] =>
  Array.from({ length: CAP_LAST + 1 }, (_, capability) => capability).filter((each) => (set >> BigInt(each)) & 1n);
