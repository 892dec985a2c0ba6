/**
 * The keys of a drive in the order of S3: by bytes. A folder sorts as its name with a slash. One page reads only the
 * folders that it needs, and holds a bounded number of names of each.
 */
import type { Dirent } from "node:fs";
import { opendir } from "node:fs/promises";
import type { DriveObjects, StoredObject } from "./drive-objects.ts";
import { type Folder, folderAt, HeldFolder, orNull } from "./folder.ts";
import { KEY_BYTES_MAX } from "./keys.ts";

export interface ListQuery {
  prefix: string;
  delimiter: string;
  /** Only keys after this one. */
  after: string;
  max: number;
  /** Names of the folder that the caller may see. */
  floor: readonly string[];
  /** Ends the walk, because the client has left. */
  signal: AbortSignal;
}

export interface ListPage {
  entries: (StoredObject | { prefix: string })[];
  /** The last entry of this page when there are more. */
  next: string | null;
}

/** Names of a folder that are held at once. */
const NAMES_MAX = 2000;
/**
 * Folders of one walk that are open at once. A key has room for 500 folders, so below this depth a folder is closed
 * while the walk is inside of it, and opened again by the names from the root.
 */
const OPEN_MAX = 16;
/** The same for the names of folders on the way: a tree of wide folders, one in the other, would fill the memory. */
const DEEP_NAMES_MAX = 100;
/** Sorts after every key with the text before it. */
const LAST = Buffer.from([0xff]);

type Found = { key: string; folder: Folder; name: string } | { prefix: string };

export async function listPage(objects: DriveObjects, query: ListQuery): Promise<ListPage> {
  const entries: ListPage["entries"] = [];
  if (query.max === 0) return { entries, next: null };
  for await (const found of keysOf(objects, query)) {
    if (entries.length === query.max) return { entries, next: nameOf(entries.at(-1)) };
    if ("prefix" in found) entries.push(found);
    else {
      const stat = await found.folder.look(found.name);
      if (stat?.isFile() || stat?.isDirectory()) entries.push(await objects.describe(found.key, stat));
    }
  }
  return { entries, next: null };
}

const nameOf = (entry: ListPage["entries"][number] | undefined): string =>
  entry === undefined ? "" : "prefix" in entry ? entry.prefix : entry.key;

async function* keysOf(objects: DriveObjects, query: ListQuery): AsyncGenerator<Found> {
  const { delimiter, ...rest } = query;
  const walked = { ...rest, after: Buffer.from(query.after), isGrouped: delimiter === "/" };
  if (delimiter === "" || delimiter === "/") yield* walk(objects, walked);
  else yield* grouped(objects, walked, delimiter);
}

/** Groups keys by a delimiter that is no border of folders: the walk begins anew after each group. */
async function* grouped(objects: DriveObjects, walked: Walk, delimiter: string): AsyncGenerator<Found> {
  const { prefix } = walked;
  for (let { after } = walked; ; ) {
    let group: string | null = null;
    for await (const found of walk(objects, { ...walked, after })) {
      const key = "key" in found ? found.key : found.prefix;
      const end = key.indexOf(delimiter, prefix.length);
      if (end >= 0) {
        group = key.slice(0, end + delimiter.length);
        break;
      }
      yield found;
    }
    if (group === null) return;
    if (Buffer.compare(Buffer.from(group), walked.after) > 0) yield { prefix: group };
    after = Buffer.concat([Buffer.from(group), LAST]);
  }
}

interface Walk {
  prefix: string;
  after: Buffer;
  floor: readonly string[];
  isGrouped: boolean;
  signal: AbortSignal;
}

/** Starts in the deepest folder that has every wanted key. */
async function* walk(objects: DriveObjects, query: Walk): AsyncGenerator<Found> {
  const { prefix, floor } = query;
  const wanted = prefix.split("/").slice(0, -1);
  const shared = Math.min(wanted.length, floor.length);
  if (wanted.slice(0, shared).join("/") !== floor.slice(0, shared).join("/")) return;
  const start = wanted.length > floor.length ? wanted : floor;
  const base = start.map((name) => `${name}/`).join("");
  if (!base.startsWith(prefix) && !prefix.startsWith(base)) return;
  if (start.some((name) => name === "" || name === "." || name === ".." || name.includes("\0"))) return;
  // Below a prefix that ends above the floor, the floor is all that a group can show.
  const border = base.indexOf("/", prefix.length);
  if (query.isGrouped && border >= 0) {
    const group = base.slice(0, border + 1);
    if (Buffer.compare(Buffer.from(group), query.after) <= 0) return;
    await using there = new HeldFolder(objects.folders.files, start);
    if (await hasKey(objects, there, query.signal)) yield { prefix: group };
    return;
  }
  if (base !== "" && base.startsWith(prefix)) {
    await using above = await folderAt(objects.folders.files, start.slice(0, -1));
    await using folder = await folderAt(objects.folders.files, start);
    if (above && folder)
      yield* ownKey(objects, { folder: above, name: start.at(-1) ?? "", inner: folder, key: base }, query);
  }
  await using place = new HeldFolder(objects.folders.files, start);
  yield* walkIn(objects, place, query);
}

async function* walkIn(objects: DriveObjects, place: HeldFolder, query: Walk): AsyncGenerator<Found> {
  const { prefix, after, isGrouped, signal } = query;
  const base = baseOf(place);
  const isDeep = place.names.length >= OPEN_MAX;
  for await (const { name, isFolder } of entriesOf(place, base, query, isDeep ? DEEP_NAMES_MAX : NAMES_MAX)) {
    signal.throwIfAborted();
    const key = `${base}${name}${isFolder ? "/" : ""}`;
    if (Buffer.byteLength(key) > KEY_BYTES_MAX) continue;
    const isPast = Buffer.compare(Buffer.from(key), after) > 0;
    const folder = await place.open();
    if (!folder) return;
    if (!isFolder) {
      if (key.startsWith(prefix) && isPast) yield { key, folder, name };
      continue;
    }
    const isGroup = isGrouped && key.startsWith(prefix) && key.length > prefix.length;
    if (isGroup && !isPast) continue;
    await using inside = await place.child(name);
    const inner = await inside?.open();
    if (!inside || !inner) continue;
    if (isGroup) {
      if (await hasKey(objects, inside, signal)) yield { prefix: key };
      continue;
    }
    if (key.startsWith(prefix)) yield* ownKey(objects, { folder, name, inner, key }, query);
    if (isDeep) await place.close();
    yield* walkIn(objects, inside, query);
  }
}

const baseOf = ({ names }: HeldFolder): string => names.map((name) => `${name}/`).join("");

interface Place {
  folder: Folder;
  name: string;
  inner: Folder;
  key: string;
}

async function* ownKey(
  objects: DriveObjects,
  { folder, name, inner, key }: Place,
  { after }: Walk,
): AsyncGenerator<Found> {
  if (Buffer.compare(Buffer.from(key), after) <= 0) return;
  if (await objects.isObject(inner)) yield { key, folder, name };
}

interface Entry {
  name: string;
  isFolder: boolean;
}

/** The entries of a folder that can have wanted keys, in order. Reads the folder again for each bounded lot of names. */
async function* entriesOf(
  place: HeldFolder,
  base: string,
  { prefix, after, signal }: Pick<Walk, "prefix" | "after" | "signal">,
  namesMax: number,
): AsyncGenerator<Entry> {
  const rest = prefix.startsWith(base) ? prefix.slice(base.length) : "";
  const baseBytes = Buffer.from(base);
  const isBelow = after.length > baseBytes.length && after.subarray(0, baseBytes.length).equals(baseBytes);
  let from = isBelow ? after.subarray(baseBytes.length) : Buffer.alloc(0);
  for (let isFirst = true; ; isFirst = false) {
    const folder = await place.open();
    if (!folder) return;
    const lot = await lotAfter(folder, { from, isFirst, rest, namesMax, signal });
    for (const { name, isFolder } of lot) yield { name, isFolder };
    const last = lot.at(-1);
    if (!last || lot.length < namesMax) return;
    from = Buffer.concat([last.sort, LAST]);
  }
}

interface Start {
  from: Buffer;
  /** The first lot may begin in the middle of a folder. */
  isFirst: boolean;
  /** Only names that can have keys with this text at their beginning. */
  rest: string;
  namesMax: number;
  signal: AbortSignal;
}

async function lotAfter(folder: Folder, start: Start): Promise<(Entry & { sort: Buffer })[]> {
  const { from, isFirst, rest, namesMax, signal } = start;
  const lot: (Entry & { sort: Buffer })[] = [];
  for await (const found of entriesAsTheyCome(folder, signal)) {
    if (!(found.name.startsWith(rest) || (found.isFolder && rest.startsWith(`${found.name}/`)))) continue;
    const sort = Buffer.from(found.isFolder ? `${found.name}/` : found.name);
    const isWithin = isFirst && found.isFolder && from.subarray(0, sort.length).equals(sort);
    if (!isWithin && Buffer.compare(sort, from) <= 0) continue;
    lot.push({ ...found, sort });
    if (lot.length >= namesMax * 2) cut(lot, namesMax);
  }
  cut(lot, namesMax);
  return lot;
}

function cut(lot: { sort: Buffer }[], namesMax: number): void {
  lot.sort((one, other) => Buffer.compare(one.sort, other.sort));
  lot.length = Math.min(lot.length, namesMax);
}

/** Null for links, pipes and the like, and for names that are not UTF-8: none of these has a key. */
async function entryOf(folder: Folder, entry: Dirent<Buffer>): Promise<Entry | null> {
  const name = entry.name.toString("utf8");
  if (!Buffer.from(name).equals(entry.name)) return null;
  if (entry.isFile() || entry.isDirectory()) return { name, isFolder: entry.isDirectory() };
  if (entry.isSymbolicLink() || entry.isFIFO() || entry.isSocket()) return null;
  const stat = await folder.look(name); // a file system that does not tell the type with the name
  return stat?.isFile() || stat?.isDirectory() ? { name, isFolder: stat.isDirectory() } : null;
}

/**
 * Whether the folder at these names is an object, or has one below it. No folder is opened whose keys would be longer
 * than a key may be.
 */
async function hasKey(objects: DriveObjects, place: HeldFolder, signal: AbortSignal, depth = 0): Promise<boolean> {
  const base = baseOf(place);
  const isDeep = depth >= OPEN_MAX;
  const start = await place.open();
  if (!start) return false;
  if (await objects.isObject(start)) return true;
  const all = { prefix: "", after: Buffer.alloc(0), signal };
  for await (const { name, isFolder } of isDeep
    ? entriesOf(place, base, all, DEEP_NAMES_MAX)
    : entriesAsTheyCome(start, signal)) {
    if (Buffer.byteLength(`${base}${name}${isFolder ? "/" : ""}`) > KEY_BYTES_MAX) continue;
    if (!isFolder) return true;
    await using inside = await place.child(name);
    if (isDeep) await place.close();
    if (inside && (await hasKey(objects, inside, signal, depth + 1))) return true;
  }
  return false;
}

async function* entriesAsTheyCome(folder: Folder, signal: AbortSignal): AsyncGenerator<Entry> {
  const dir = await orNull(opendir(folder.at("."), { encoding: "buffer" as BufferEncoding, bufferSize: 256 }));
  if (!dir) return;
  for await (const entry of dir) {
    signal.throwIfAborted();
    const found = await entryOf(folder, entry as unknown as Dirent<Buffer>);
    if (found) yield found;
  }
}
