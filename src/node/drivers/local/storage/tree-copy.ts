/** Copies the files that a workload wrote, in a root of their own. */
import { mkdirSync } from "node:fs";
import type { Machine } from "../machine/machine.ts";
import type { RootPart } from "../workload/launch-program.ts";
import { runConfined } from "./confined-command.ts";

/** Creates `to` and returns the size of the copy in bytes. */
export type CopyTree = (from: string, to: string) => Promise<number>;

export const COPY_SOURCE = "/source";
export const COPY_TARGET = "/target";
/** -a keeps owners, times, extended attributes and whiteouts. */
const COPY = `cp -a --reflink=auto -T ${COPY_SOURCE} ${COPY_TARGET}`;
/** Measured in the same place: a server without root may not look into folders that are closed to their owner. */
const MEASURE = `du -sk ${COPY_TARGET}`;

/** `parts`: a root with the machine's programs. */
export const treeCopier =
  (machine: Machine, parts: RootPart[]): CopyTree =>
  async (from, to) => {
    mkdirSync(to, { mode: 0o700 });
    const said = await runConfined(machine, parts, {
      title: "The copy of a workload's files",
      script: `${COPY} && ${MEASURE}`,
      mounts: [
        { base: from, path: COPY_SOURCE, readOnly: true },
        { base: to, path: COPY_TARGET, readOnly: false },
      ],
    });
    // The size is the last line.
    return Number.parseInt(said.trimEnd().split("\n").at(-1) ?? "", 10) * 1024;
  };
