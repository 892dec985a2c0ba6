/**
 * The request to a confined process about one archive, and its answer. The process gets the archive as a descriptor and
 * the target as a path, and knows nothing else of the machine.
 */
import { createHash } from "node:crypto";
import { closeSync, fstatSync } from "node:fs";
import { posix } from "node:path";
import { type Budget, spend, TOO_LARGE } from "./budget.ts";
import { bytesOf, compressionOf, plainBytes, type Range, readExactly, writeAll } from "./bytes.ts";
import { type FilesLimits, unpackFiles } from "./files.ts";
import { Layer, type LayerNotes } from "./layer.ts";
import { checkLayer } from "./layer-check.ts";
import { ArchiveRefused, refused } from "./refusal.ts";
import { readTar } from "./tar-reader.ts";
import { settle, Tree } from "./tree.ts";

export interface Job {
  /** An empty folder that no other process writes to. */
  target: string;
  /** Time limit for one archive. */
  timeMaxMs: number;
  work:
    | { kind: "files"; limits: FilesLimits }
    | { kind: "layers"; layers: LayerSource[]; lowers: LowerLayer[]; budget: Budget; owners: boolean }
    | { kind: "check"; layers: Range[]; budget: Budget }
    | { kind: "index"; plainName: string; bytesMax: number; filesMax: number };
}

/** The byte range of a file in an image archive; for a link, the range of its target. */
export interface ArchiveFile extends Range {
  name: string;
  link?: string;
}

/** A layer of an image; the lowest comes first. */
export interface LayerSource extends Range {
  /** Name of the folder to make below the target. */
  name: string;
}

/** A layer that was unpacked before and lies below the new ones. */
export interface LowerLayer {
  /** A folder that nobody changes. */
  path: string;
  /** Its folders that hide the folder of the same name below. */
  opaque: string[];
}

export interface UnpackedLayer extends LayerNotes {
  /** Digest of the uncompressed archive. */
  digest: string;
  sizeBytes: number;
  entries: number;
}

export interface Answers {
  /** Total size of all files, in bytes. */
  files: { sizeBytes: number };
  layers: { layers: UnpackedLayer[] };
  /** Number of entries of all layers, none of which is anything that another reader of archives could take otherwise. */
  check: { entries: number };
  /** `plain`: the archive was compressed; its uncompressed bytes are in the file of that name. */
  index: { files: ArchiveFile[]; plain: boolean };
}

export type WorkKind = keyof Answers;

export type UnpackAnswer<Kind extends WorkKind = WorkKind> =
  | Answers[Kind]
  | { refusal: { kind: ArchiveRefused["kind"]; reason: string } };

/** Most notes, which are answered as text. Real images remove a few hundred files at most. */
const NOTES_MAX = 100_000;
const NOTES_BYTES_MAX = 16 * 1024 ** 2;

/** Returns a refusal as the answer; throws when the machine fails. */
export async function runJob({ target, work, timeMaxMs }: Job, archive: number): Promise<UnpackAnswer> {
  const endsAtMs = performance.now() + timeMaxMs;
  const checkTime = (): void => {
    if (performance.now() > endsAtMs) throw refused("unpacking it takes too long");
  };
  try {
    if (work.kind === "files") return { sizeBytes: await unpackFiles(archive, target, work.limits, checkTime) };
    if (work.kind === "layers") return { layers: await unpackLayers(archive, target, work, checkTime) };
    if (work.kind === "check") return { entries: await checkLayers(archive, work, checkTime) };
    return await indexArchive(archive, target, work, checkTime);
  } catch (error) {
    if (error instanceof ArchiveRefused) return { refusal: { kind: error.kind, reason: error.message } };
    throw error;
  }
}

type WorkOf<Kind> = Extract<Job["work"], { kind: Kind }>;

async function unpackLayers(
  archive: number,
  target: string,
  { layers, lowers, budget, owners }: WorkOf<"layers">,
  checkTime: () => void,
): Promise<UnpackedLayer[]> {
  const tree = new Tree(target);
  /** Topmost first: new layers, then those that were there. */
  const below: Layer[] = [];
  for (const lower of lowers.toReversed()) below.unshift(new Layer(lower.path, [...below], owners, lower.opaque));
  const made: Layer[] = [];
  const answers: UnpackedLayer[] = [];
  const notes = { left: NOTES_MAX, bytesLeft: NOTES_BYTES_MAX };
  try {
    for (const source of layers) {
      tree.makeFolder(tree.root, source.name);
      const layer = new Layer(`${target}/${source.name}`, [...below], owners);
      below.unshift(layer);
      made.unshift(layer);
      const unpacked = await unpackLayer(layer, plainBytes(archive, source), budget, checkTime);
      for (const place of [...unpacked.removed, ...unpacked.opaque]) {
        notes.left -= 1;
        notes.bytesLeft -= Buffer.byteLength(place);
      }
      if (notes.left < 0 || notes.bytesLeft < 0) throw refused("it removes more files than an image may");
      answers.push(unpacked);
    }
    for (const layer of made) layer.finish();
    for (const { name } of layers) settle(tree.open(tree.root, name).fd, null, 0o755, null);
  } finally {
    for (const layer of below) layer.close();
    tree.close();
  }
  return answers;
}

async function checkLayers(
  archive: number,
  { layers, budget }: WorkOf<"check">,
  checkTime: () => void,
): Promise<number> {
  const { entries } = budget;
  for (const range of layers) await checkLayer(spending(plainBytes(archive, range), budget, checkTime), budget);
  return entries - budget.entries;
}

/** The bytes, as long as the budget has some left. */
async function* spending(bytes: AsyncIterable<Buffer>, budget: Budget, checkTime: () => void): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) {
    checkTime();
    budget.readBytes -= chunk.length;
    if (budget.readBytes < 0) throw refused(TOO_LARGE);
    yield chunk;
  }
}

async function unpackLayer(
  layer: Layer,
  bytes: AsyncIterable<Buffer>,
  budget: Budget,
  checkTime: () => void,
): Promise<UnpackedLayer> {
  const hash = createHash("sha256");
  let [sizeBytes, entries] = [0, 0];
  async function* hashed(): AsyncGenerator<Buffer> {
    for await (const chunk of spending(bytes, budget, checkTime)) {
      hash.update(chunk);
      yield chunk;
    }
  }
  for await (const entry of readTar(hashed())) {
    checkTime();
    entries += 1;
    spend(budget, entry);
    sizeBytes += entry.size;
    await layer.apply(entry);
  }
  return { ...layer.rest(), digest: `sha256:${hash.digest("hex")}`, sizeBytes, entries };
}

/**
 * Lists the files of an image archive, whose contents are then read at their offsets. Decompresses the archive first.
 */
async function indexArchive(
  archive: number,
  target: string,
  { plainName, bytesMax, filesMax }: WorkOf<"index">,
  checkTime: () => void,
): Promise<Answers["index"]> {
  const { size } = fstatSync(archive);
  const plain = compressionOf(readExactly(archive, { start: 0, size: Math.min(size, 4) })) !== null;
  if (!plain) return { files: await filesIn(archive, size, filesMax, checkTime), plain };
  const tree = new Tree(target);
  const fd = tree.createFile(tree.root, plainName);
  let sizeBytes = 0;
  try {
    for await (const chunk of plainBytes(archive, { start: 0, size })) {
      checkTime();
      sizeBytes += chunk.length;
      if (sizeBytes > bytesMax) throw refused(TOO_LARGE);
      writeAll(fd, chunk);
    }
    return { files: await filesIn(fd, sizeBytes, filesMax, checkTime), plain };
  } finally {
    closeSync(fd);
    tree.close();
  }
}

async function filesIn(fd: number, size: number, filesMax: number, checkTime: () => void): Promise<ArchiveFile[]> {
  const files: ArchiveFile[] = [];
  for await (const entry of readTar(bytesOf(fd, { start: 0, size }))) {
    checkTime();
    const name = archiveName(entry.path);
    if (entry.type === "file") files.push({ name, start: entry.offset, size: entry.size });
    else if (entry.type === "symlink")
      files.push({ name, start: 0, size: 0, link: posix.join(posix.dirname(name), entry.linkPath) });
    else if (entry.type === "link") files.push({ name, start: 0, size: 0, link: archiveName(entry.linkPath) });
    if (files.length > filesMax) throw refused("it holds too many files");
  }
  return files;
}

const archiveName = (path: string): string => posix.normalize(path).replace(/^\.?\/+/, "");
