/**
 * `berth storage`: what takes space in the data folder of this machine, by kind and workspace, and folders that no
 * record names. Changes nothing, and may be run beside a running server.
 */
import { execFile } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { type Config, driverDir } from "../config.ts";
import { bytesText } from "../lib/bytes-text.ts";
import type { Use as DriveUse } from "../lib/disk/folder-use.ts";
import { printable } from "../lib/printable.ts";
import { type DriveQuota, driveQuotaOf, isLimited } from "../lib/schemas/drive-quota.ts";
import { openPostgresSnapshot, openSqliteSnapshot } from "../store/backup/snapshot.ts";
import { SQLITE_FILE } from "../store/store.ts";

/** Who has files: a kind of resource in a workspace, or the platform itself. */
interface Use {
  kind: string;
  workspace: string;
  count: number;
  bytes: number;
}

export interface Report {
  /** Largest first. */
  uses: Use[];
  orphans: { path: string; bytes: number }[];
  /** What the drives of workspaces hold by the last count; empty where drives have no quota. */
  driveUses: ({ workspace: string } & DriveUse)[];
}

interface Named {
  workspace: string;
  kind: string;
}

/** Families of folders, one folder for each resource, and what their names are. */
interface Family {
  folder: string;
  kind: string;
  namedBy: "uid" | "name" | "workload";
  /** The server removes by itself what no record names; a fork or an export may still need it. */
  swept?: true;
}

const FAMILIES: readonly Family[] = [
  { folder: "volumes", kind: "volume", namedBy: "uid" },
  { folder: "drives", kind: "drive", namedBy: "uid" },
  { folder: "drives-work", kind: "drive", namedBy: "uid" },
  { folder: "volume-copies", kind: "volumesnapshot", namedBy: "name", swept: true },
  { folder: "snapshots", kind: "snapshot", namedBy: "name", swept: true },
  { folder: "workloads", kind: "workload", namedBy: "workload", swept: true },
];
/** Folders that all workspaces share. */
const SHARED = ["images", "tasks"];
const PLATFORM = "-";
const OUTPUT_BYTES_MAX = 256 * 1024 * 1024;

export async function measureStorage(config: Config): Promise<Report> {
  const runtime = driverDir(config);
  // Folders first: a record is written before its folder is made.
  const measured = await Promise.all(
    FAMILIES.map(async (family) => ({ family, sizes: await sizesBelow(join(runtime, family.folder)) })),
  );
  const records = await readRecords(config);
  const uses = new Map<string, Use>();
  const orphans: Report["orphans"] = [];
  const add = (kind: string, workspace: string, bytes: number): void => {
    const use = uses.get(`${kind} ${workspace}`) ?? { kind, workspace, count: 0, bytes: 0 };
    uses.set(`${kind} ${workspace}`, { ...use, count: use.count + 1, bytes: use.bytes + bytes });
  };
  for (const { family, sizes } of measured)
    for (const [path, bytes] of sizes) {
      const owner = records.ownerOf(family, path);
      if (owner) add(owner.kind, owner.workspace, bytes);
      // A name with a dot is that of work in progress.
      else if (family.swept || basename(path).startsWith(".")) add(family.kind, PLATFORM, bytes);
      else orphans.push({ path, bytes });
    }
  for (const folder of [
    ...SHARED.map((name) => join(runtime, name)),
    join(config.data, "blobs"),
    join(config.data, "logs"),
  ])
    if (existsSync(folder)) add(basename(folder), PLATFORM, await sizeOf(folder));
  if (!config.database_url) add("database", PLATFORM, sqliteBytes(join(config.data, SQLITE_FILE)));
  const bySize = (a: { bytes: number }, b: { bytes: number }): number => b.bytes - a.bytes;
  const driveUses = isLimited(driveQuotaOf(config.quotas))
    ? [...records.driveUses].map(([workspace, use]) => ({ workspace, ...use })).sort(bySize)
    : [];
  return { uses: [...uses.values()].sort(bySize), orphans: orphans.sort(bySize), driveUses };
}

/** Returns the lines to show to the operator. */
export function storageLines(
  { uses, orphans, driveUses }: Report,
  { driver, data, quotas }: Pick<Config, "driver" | "data" | "quotas">,
): string[] {
  const row = (kind: string, workspace: string, count: string, size: string): string =>
    `${kind.padEnd(16)} ${workspace.padEnd(24)} ${count.padStart(7)} ${size.padStart(10)}`;
  return [
    row("KIND", "WORKSPACE", "COUNT", "SIZE"),
    ...uses.map(({ kind, workspace, count, bytes }) => row(kind, workspace, String(count), bytesText(bytes))),
    "",
    ...driveUses.map((use) => driveLine(use, driveQuotaOf(quotas))),
    ...(orphans.length === 0
      ? ["Every volume and drive has a record."]
      : [
          "No record names these. Nothing removes them; look at them first, then remove them with rm -r:",
          ...orphans.map(({ path, bytes }) => `  ${printable(JSON.stringify(path))}  ${bytesText(bytes)}`),
        ]),
    ...(driver === "local"
      ? []
      : [`Only files in ${data} are counted; driver ${driver} keeps volumes and images elsewhere.`]),
  ];
}

function driveLine({ workspace, bytes, objects }: Report["driveUses"][number], quota: DriveQuota): string {
  const held = quota.bytes === null ? bytesText(bytes) : `${bytesText(bytes)} of ${bytesText(quota.bytes)}`;
  const number = quota.objects === null ? String(objects) : `${objects} of ${quota.objects}`;
  return `Drives of ${workspace} hold ${held} in ${number} objects.`;
}

/** With its log of writes. */
const sqliteBytes = (file: string): number =>
  ["", "-wal", "-shm"].reduce((sum, end) => sum + (statSync(file + end, { throwIfNoEntry: false })?.size ?? 0), 0);

interface Records {
  /** By workspace. */
  driveUses: Map<string, DriveUse>;
  ownerOf(family: Family, path: string): Named | null;
}

async function readRecords({ data, database_url }: Config): Promise<Records> {
  const byUid = new Map<string, Named>();
  const byName = new Map<string, Named>();
  const driveUses = new Map<string, DriveUse>();
  const snapshot = database_url
    ? await openPostgresSnapshot(database_url)
    : openSqliteSnapshot(join(data, SQLITE_FILE));
  try {
    if (snapshot.tables.has("resources"))
      for await (const row of snapshot.rows("resources", ["uid", "workspace", "kind", "name", "state"])) {
        const [uid = "", workspace = "", kind = "", name = "", state = "{}"] = row.map(String);
        const named = { workspace, kind };
        byUid.set(uid, named);
        byName.set(`${kind} ${name}`, named);
        const {
          copies = [],
          usedBytes = 0,
          usedObjects = 0,
        } = JSON.parse(state) as { copies?: { uid: string }[]; usedBytes?: number; usedObjects?: number };
        if (kind === "drive") {
          const { bytes, objects } = driveUses.get(workspace) ?? { bytes: 0, objects: 0 };
          driveUses.set(workspace, { bytes: bytes + usedBytes, objects: objects + usedObjects });
        }
        for (const copy of copies) byUid.set(copy.uid, named);
      }
  } finally {
    await snapshot.close();
  }
  return {
    driveUses,
    ownerOf({ kind, namedBy }, path) {
      const id = basename(path);
      if (namedBy === "name") return byName.get(`${kind} ${id}`) ?? null;
      return byUid.get(namedBy === "uid" ? id : workloadIn(path)) ?? null;
    },
  };
}

/** Uid of the workload in this folder; empty for one that is kept ready, and while the record is being written. */
function workloadIn(folder: string): string {
  try {
    return (JSON.parse(readFileSync(join(folder, "record.json"), "utf8")) as { uid: string | null }).uid ?? "";
  } catch {
    return "";
  }
}

/** Space of every folder in this one, by its path. */
async function sizesBelow(folder: string): Promise<Map<string, number>> {
  if (!existsSync(folder)) return new Map();
  const lines = await du("--max-depth=1", folder);
  return new Map(lines.filter(({ path }) => path !== folder).map(({ path, bytes }) => [path, bytes]));
}

const sizeOf = async (folder: string): Promise<number> => (await du("--summarize", folder))[0]?.bytes ?? 0;

/** Files that vanish meanwhile, or that this user may not see, do not count. */
async function du(depth: string, folder: string): Promise<{ path: string; bytes: number }[]> {
  const text = await new Promise<string>((resolve, reject) => {
    const args = ["--one-file-system", "--block-size=1", "--null", depth, folder];
    execFile("du", args, { maxBuffer: OUTPUT_BYTES_MAX }, (error, stdout) =>
      error && stdout === "" ? reject(error) : resolve(stdout),
    );
  });
  return text
    .split("\0")
    .filter((line) => line !== "")
    .map((line) => ({ bytes: Number.parseInt(line, 10), path: line.slice(line.indexOf("\t") + 1) }));
}
