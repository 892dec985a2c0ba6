/**
 * Snapshots: copies of the files that a workload wrote. Workloads made from a snapshot use it as a read-only layer, so
 * making one copies nothing. Blocks are shared with the original where the file system can.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "../../../../contract/errors.ts";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { Snapshot } from "../../../capabilities/snapshots.ts";
import { forgetCopy } from "../gvisor/copy.ts";
import type { RootPart } from "../workload/launch-program.ts";
import { CommandFailed } from "./confined-command.ts";
import { COPY_SOURCE, COPY_TARGET, type CopyTree } from "./tree-copy.ts";

export interface SnapshotRecord extends Snapshot {
  imageDigest: string;
  /** The layers of a workload made from the snapshot. */
  parts: RootPart[];
}

const FILE = "snapshot.json";

/** Adds to the folder of a snapshot what belongs to it beside the files, and copies the files in between. */
export type KeepMore = (snapshot: string, copyFiles: () => Promise<void>) => Promise<number>;

/** `more`: absent for a snapshot of files alone. */
export async function takeSnapshot(
  dir: string,
  id: string,
  workload: { dir: string; image: string; imageDigest: string; parts: RootPart[] },
  copy: CopyTree,
  more?: KeepMore,
): Promise<SnapshotRecord> {
  const temp = join(dir, `.${id}`);
  const target = join(dir, id);
  let part = 0;
  let sizeBytes = 0;
  await removeTree(temp);
  mkdirSync(temp, { recursive: true });
  try {
    const copyFiles = async (): Promise<void> => {
      const copyPart = async (index: number): Promise<number> => {
        const upper = join(workload.dir, "fs", String(index), "upper");
        return copy(upper, join(temp, String(index))).catch((error: unknown) => {
          part = index;
          throw error;
        });
      };
      // At once: the workload stands still meanwhile.
      const ended = await Promise.allSettled([...workload.parts.keys()].map(copyPart));
      for (const each of ended) {
        if (each.status === "rejected") throw each.reason;
        sizeBytes += each.value;
      }
    };
    if (more) sizeBytes += await more(temp, copyFiles);
    else await copyFiles();
    const record: SnapshotRecord = {
      id,
      image: workload.image,
      imageDigest: workload.imageDigest,
      sizeBytes,
      createdAt: new Date().toISOString(),
      ...(more ? { memory: true } : {}),
      parts: workload.parts.map(({ at, lowers }, index) => ({ at, lowers: [join(target, String(index)), ...lowers] })),
    };
    await writeFile(join(temp, FILE), JSON.stringify(record));
    renameSync(temp, target);
    return record;
  } catch (error) {
    await removeTree(temp);
    if (error instanceof PlatformError) throw error;
    // Not retried: the workload is frozen meanwhile, and a retry would fail for the same reason.
    const message = `The files could not be copied${reasonIn(error, workload.parts[part]?.at ?? "")}.`;
    throw new PlatformError("unprocessable", message, { cause: new Error(String(error).slice(0, REASON_MAX)) });
  }
}

const REASON_MAX = 500;

/** "cp: cannot open 'PATH' for reading: Permission denied", with the path as its owner knows it. */
function reasonIn(error: unknown, at: string): string {
  const [line = ""] = error instanceof CommandFailed ? error.message.split("\n") : [];
  const [, path = "", reason] = /^[^']*'(.*)'.*: ([^:]+)$/.exec(line) ?? [];
  if (reason === undefined) return "";
  const root = [COPY_SOURCE, COPY_TARGET].find((folder) => path.startsWith(`${folder}/`));
  const inside = root === undefined ? "" : join(at, path.slice(root.length));
  return inside === "" || inside.length > REASON_MAX ? `: ${reason}` : `: ${inside}: ${reason}`;
}

export function readSnapshot(dir: string, id: string): SnapshotRecord | null {
  const file = join(dir, id, FILE);
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as SnapshotRecord) : null;
}

export function listSnapshots(dir: string): SnapshotRecord[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir).flatMap((id) => readSnapshot(dir, id) ?? []);
}

/** Forgets a snapshot. Its files stay while a workload or snapshot uses them; see `sweepSnapshots`. */
export function forgetSnapshot(dir: string, id: string): void {
  rmSync(join(dir, id, FILE), { force: true });
  forgetCopy(join(dir, id));
}

/** Removes the files of forgotten snapshots that neither a workload nor another snapshot uses. */
export async function sweepSnapshots(dir: string, partsInUse: RootPart[]): Promise<void> {
  if (!existsSync(dir)) return;
  const parts = [...partsInUse, ...listSnapshots(dir).flatMap((snapshot) => snapshot.parts)];
  const used = new Set(parts.flatMap(({ lowers }) => lowers));
  for (const id of readdirSync(dir)) {
    if (id.startsWith(".") || existsSync(join(dir, id, FILE))) continue;
    const layers = readdirSync(join(dir, id)).map((index) => join(dir, id, index));
    if (!layers.some((layer) => used.has(layer))) await removeTree(join(dir, id));
  }
}
