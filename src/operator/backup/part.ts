/** The files of one node in a backup: which units it has, and the chunks of each. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { z } from "zod";
import { NODE_FILE } from "../../node/identity.ts";
import { damaged, type Progress, type Repository, type Stored } from "./repository/repository.ts";
import { FAMILIES, UNIT_NAME, unitsOf, withTar, withWorkFolder } from "./units.ts";

const stored = z.object({ chunks: z.array(z.string()), bytes: z.int().min(0) });

const storedUnit = z.object({
  folder: z.enum(FAMILIES.map(({ folder }) => folder)),
  name: z.union([z.literal(""), z.string().regex(UNIT_NAME)]),
  stamp: z.string().max(100),
  tar: stored,
});
export type StoredUnit = z.output<typeof storedUnit>;

const part = z.object({
  node: z.object({ id: z.string().min(1).max(200), name: z.string().min(1).max(200) }),
  /** The data folder on the machine that the part is of. */
  dataDir: z.string().min(1),
  units: z.int().min(0),
  /** Of all units; absent in parts of older versions. */
  bytes: z.int().min(0).optional(),
  /** Files that could not be read, and the first of them; absent = none. */
  leftOut: z.object({ count: z.int().min(1), first: z.string() }).optional(),
  /** The units as lines of JSON, which may be long: a stream of their own. */
  index: stored,
});
export type Part = z.output<typeof part>;

/** The id of a node may have any characters, and is a hash in names. */
export const nodeWord = (node: string): string => createHash("sha256").update(node).digest("hex").slice(0, 32);
const partName = (backup: string, node: string): string => `parts/${backup}/${nodeWord(node)}`;

export interface TakePart {
  repository: Repository;
  backup: string;
  dataDir: string;
  progress: Progress & { unit(title: string): void };
}

/** Stores the files of the node in this data folder. */
export async function takePart({ repository, backup, dataDir, progress }: TakePart): Promise<Part> {
  const node = readNode(dataDir);
  const before = await unitsBefore(repository, node.id);
  const lines: string[] = [];
  let bytes = 0;
  let leftOut: Part["leftOut"];
  await withWorkFolder(dataDir, async (work) => {
    for (const unit of unitsOf(dataDir)) {
      const { family, name, stamp } = unit;
      const known = family.immutable ? before.get(`${family.folder}/${name}`) : undefined;
      const title = name === "" ? family.folder : `${family.folder}/${name}`;
      progress.unit(title);
      const reader = {
        use: (packed: Readable): Promise<Stored> => repository.write(packed, progress),
        leftOut: (reason: string): void => {
          leftOut = { count: (leftOut?.count ?? 0) + 1, first: leftOut?.first ?? `${title}/${reason}` };
        },
      };
      const tar: Stored | null = known?.stamp === stamp ? known.tar : await withTar(unit, work, reader);
      bytes += tar?.bytes ?? 0;
      if (tar) lines.push(`${JSON.stringify({ folder: family.folder, name, stamp, tar } satisfies StoredUnit)}\n`);
    }
  });
  const index = await repository.write(bytesOf(lines), progress);
  const taken: Part = { node, dataDir, units: lines.length, bytes, ...(leftOut ? { leftOut } : {}), index };
  await repository.writeNote(partName(backup, node.id), taken);
  return taken;
}

export function readNode(dataDir: string): Part["node"] {
  return part.shape.node.parse(JSON.parse(readFileSync(join(dataDir, NODE_FILE), "utf8")));
}

async function* bytesOf(lines: readonly string[]): AsyncGenerator<Buffer> {
  for (const line of lines) yield Buffer.from(line);
}

/** Units of the node in its last backup whose chunks are all there. */
async function unitsBefore(repository: Repository, node: string): Promise<Map<string, StoredUnit>> {
  const before = new Map<string, StoredUnit>();
  const last = (await repository.listNotes("backups")).at(-1);
  const found = last === undefined ? null : await readPart(repository, last, node);
  if (!found) return before;
  const there = await repository.chunkNames();
  for await (const unit of unitsIn(repository, found))
    if (unit.tar.chunks.every((name) => there.has(name))) before.set(`${unit.folder}/${unit.name}`, unit);
  return before;
}

/** Null when the backup has no part of this node. */
export async function readPart(repository: Repository, backup: string, node: string): Promise<Part | null> {
  const note = await repository.readNote(partName(backup, node));
  if (note === null) return null;
  return checked(part, note);
}

export async function* unitsIn(repository: Repository, { index, units }: Part): AsyncGenerator<StoredUnit> {
  let count = 0;
  for await (const line of linesOf(repository.read(index))) {
    count += 1;
    yield checked(storedUnit, JSON.parse(line));
  }
  if (count !== units) throw damaged("units are missing");
}

async function* linesOf(bytes: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest: Buffer[] = [];
  for await (const piece of bytes) {
    let from = 0;
    for (let at = piece.indexOf(10); at !== -1; at = piece.indexOf(10, from)) {
      yield Buffer.concat([...rest, piece.subarray(from, at)]).toString("utf8");
      rest = [];
      from = at + 1;
    }
    rest.push(piece.subarray(from));
  }
}

export function checked<T>(schema: z.ZodType<T>, value: unknown): T {
  const { data, error } = schema.safeParse(value);
  if (error) throw damaged("it holds what no backup writes");
  return data as T;
}
