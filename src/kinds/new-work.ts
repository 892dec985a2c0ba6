/** Which operations write new files to disk. They are refused while the disk is nearly full; all others continue. */
import { diskFull } from "../contract/errors.ts";
import type { Operation } from "../contract/operation.ts";
import type { Deps } from "./port.ts";

/** Kinds whose create and update write files to a disk of the platform. */
const KINDS_WITH_FILES: ReadonlySet<string> = new Set([
  "agent",
  "application",
  "drive",
  "function",
  "job",
  "sandbox",
  "snapshot",
  "volume",
  "volumesnapshot",
  "volumetemplate",
]);
/** Further operations that write files. */
const MORE: ReadonlySet<string> = new Set([
  "imageCreate",
  "imageLoad",
  "jobExecutionCreate",
  "sandboxFork",
  "volumeClone",
  "volumeExport",
  "volumeImport",
  "volumeRestore",
]);

export const isNewWork = ({ id, kind = "", verb }: Operation): boolean =>
  MORE.has(id) || ((verb === "create" || verb === "update") && KINDS_WITH_FILES.has(kind));

export function refuseOnFullDisk({ disk }: Pick<Deps, "disk">): void {
  const shortage = disk.shortage();
  if (shortage !== null) throw diskFull(`New work is refused. ${shortage}`);
}
