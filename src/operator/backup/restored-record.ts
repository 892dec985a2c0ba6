/**
 * Records of the local driver name folders of the machine that they were on. A record that comes to another machine or
 * data folder names those of its new place, and none outside of it but the programs of the machine.
 */
import { lstatSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, normalize } from "node:path";
import { z } from "zod";
import { PROGRAM_DIRS } from "../../node/drivers/local/images/base-image.ts";
import { NO_SLOT, saveRecord, type WorkloadRecord } from "../../node/drivers/local/workload/record.ts";
import { checked } from "./part.ts";
import { damaged } from "./repository/repository.ts";
import type { Family } from "./units.ts";

interface Move {
  from: string;
  to: string;
}

const recordShape = z.looseObject({
  parts: z.array(z.looseObject({ at: z.string(), lowers: z.array(z.string()) })),
});

/** Called for a unit that was unpacked into a folder of its own. */
export function settleUnit(folder: string, { record: file }: Family, move: Move): void {
  if (file === undefined) return;
  const path = join(folder, file);
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat) return; // a snapshot that was forgotten, and whose files others stand on
  if (!stat.isFile()) throw damaged(`${file} is no file`);
  const found = checked(recordShape, JSON.parse(readFileSync(path, "utf8")));
  const parts = found.parts.map((part) => ({ ...part, lowers: part.lowers.map((lower) => moved(lower, move)) }));
  rmSync(path);
  if (file === "record.json") saveRecord(folder, endedRecord({ ...found, parts } as unknown as WorkloadRecord));
  else writeFileSync(path, JSON.stringify({ ...found, parts }), { flag: "wx" });
}

/** A sandbox whose processes are gone; it starts again on its files. */
function endedRecord({ hibernated: _, ...record }: WorkloadRecord): WorkloadRecord {
  const nobody = { pid: 0, startTime: "" };
  const { sizeMb } = record.disk ?? {};
  return {
    ...{ ...record, ...nobody, watcher: nobody, slot: NO_SLOT, boot: "restored" },
    cgroup: { version: record.cgroup.version, paths: {} },
    ...(sizeMb === undefined ? {} : { disk: { sizeMb } }),
  };
}

function moved(lower: string, { from, to }: Move): string {
  const isOwn = lower.startsWith(`${from}/`);
  const path = isOwn ? `${to}${lower.slice(from.length)}` : lower;
  const isProgram = ["usr", ...PROGRAM_DIRS].some((name) => path === `/${name}` || path.startsWith(`/${name}/`));
  if ((isOwn || isProgram) && normalize(path) === path) return path;
  throw damaged(`a record names the folder ${JSON.stringify(lower.slice(0, 200))}, which is none of a sandbox`);
}
