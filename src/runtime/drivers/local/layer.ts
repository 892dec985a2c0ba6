/**
 * Unpacks one image layer into a folder, as overlayfs wants it. A folder that the archive does not list but puts files
 * into is the one of the layers below: with its owner and mode, or where its link leads.
 *
 * The archive is hostile: no entry leaves the folder, by name or through a link that an earlier entry made; device files
 * are refused; what it unpacks to is bounded.
 */
import { createHash, type Hash } from "node:crypto";
import type { Stats } from "node:fs";
import { chmod, lchown, link, lstat, lutimes, mkdir, open, readlink, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { readTar, type TarEntry } from "../../../blobs/tar-reader.ts";
import { PlatformError } from "../../../contract/errors.ts";
import { removeTree } from "../../../lib/remove-tree.ts";
import type { CallOptions } from "../../driver.ts";
import type { Spawner } from "./spawner.ts";
import { AT_FDCWD } from "./syscalls.ts";

/** What one image may still use; shared by its layers. */
export interface Budget {
  bytes: number;
  entries: number;
  /** Of archives, read whether or not they hold anything. */
  readBytes: number;
}

export interface UnpackedLayer {
  /** Of the uncompressed archive. */
  digest: string;
  sizeBytes: number;
}

export interface Place {
  dir: string;
  /** The layers that it lies on, topmost first. */
  lowers: string[];
}

const PATH_BYTES_MAX = 4096;
const LINKS_MAX = 40; // as many as the kernel follows
/** Ids beyond the range of a workload cannot be seen in it. */
const ID_MAX = 65_534;
const WHITEOUT = ".wh.";
const OPAQUE = ".wh..wh..opq";

export async function unpackLayer(
  spawner: Spawner,
  archive: AsyncIterable<Buffer>,
  { dir, lowers }: Place,
  budget: Budget,
  { signal }: CallOptions = {},
): Promise<UnpackedLayer> {
  const hash = createHash("sha256");
  const marks: Mark[] = [];
  const root = process.getuid?.() === 0;
  let sizeBytes = 0;
  await mkdir(dir, { recursive: true });
  await chmod(dir, 0o755);
  for await (const entry of readTar(hashed(archive, hash, budget))) {
    signal?.throwIfAborted();
    budget.entries -= 1;
    budget.bytes -= entry.size;
    sizeBytes += entry.size;
    if (budget.entries < 0 || budget.bytes < 0) throw refused("it is larger than an image may be");
    const parts = partsOf(entry.path);
    const name = parts.pop();
    if (name === undefined) continue; // the root itself
    const parent = await folderInside({ dir, lowers }, parts, root);
    if (name === OPAQUE) marks.push({ kind: "opaque", path: parent });
    else if (name.startsWith(`${WHITEOUT}${WHITEOUT}`))
      continue; // bookkeeping of an old image format
    else if (name.startsWith(WHITEOUT))
      marks.push({ kind: "removed", path: join(parent, name.slice(WHITEOUT.length)) });
    else await unpackEntry({ dir, lowers }, join(parent, name), entry, root);
  }
  await writeMarks(spawner, marks, root);
  return { digest: `sha256:${hash.digest("hex")}`, sizeBytes };
}

async function* hashed(source: AsyncIterable<Buffer>, hash: Hash, budget: Budget): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    budget.readBytes -= chunk.length;
    if (budget.readBytes < 0) throw refused("it is larger than an image may be");
    hash.update(chunk);
    yield chunk;
  }
}

function partsOf(path: string): string[] {
  if (Buffer.byteLength(path) > PATH_BYTES_MAX || path.includes("\0")) throw refused("a name in it is too long");
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw refused(`the name ${path.slice(0, 100)} leads out of it`);
  return parts;
}

/** The folder of that name inside `dir`, made when missing; links are followed as if `dir` were the root. */
async function folderInside({ dir, lowers }: Place, names: string[], privileged: boolean): Promise<string> {
  let links = 0;
  const todo = [...names];
  const done: string[] = [];
  for (let name = todo.shift(); name !== undefined; name = todo.shift()) {
    if (name === "..") {
      done.pop();
      continue;
    }
    const path = join(dir, ...done, name);
    const stat = await lstat(path).catch(() => null);
    const below = stat ? null : await findBelow(lowers, [...done, name]);
    if (stat?.isSymbolicLink() || below?.stat.isSymbolicLink()) {
      links += 1;
      if (links > LINKS_MAX) throw refused("its links lead in circles");
      const target = await readlink(below?.path ?? path);
      if (target.startsWith("/")) done.length = 0;
      todo.unshift(...target.split("/").filter((part) => part !== "" && part !== "."));
      continue;
    }
    if (stat && !stat.isDirectory()) await rm(path);
    if (!stat?.isDirectory()) {
      await mkdir(path);
      const like = below?.stat.isDirectory() ? below.stat : null;
      if (like && privileged) await lchown(path, like.uid, like.gid);
      await chmod(path, like ? like.mode & 0o7777 : 0o755);
    }
    done.push(name);
  }
  return join(dir, ...done);
}

/** What the layers below have in that place; their own links are not followed on the way, they lead out of them. */
async function findBelow(lowers: string[], names: string[]): Promise<{ path: string; stat: Stats } | null> {
  for (const lower of lowers) {
    for (let depth = 1, isFolder = true; isFolder && depth <= names.length; depth++) {
      const path = join(lower, ...names.slice(0, depth));
      const stat = await lstat(path).catch(() => null);
      if (stat && depth === names.length) return { path, stat };
      isFolder = stat?.isDirectory() ?? false;
    }
  }
  return null;
}

async function unpackEntry(place: Place, path: string, entry: TarEntry, privileged: boolean): Promise<void> {
  if (entry.type === "device") throw refused(`it holds the device file ${entry.path.slice(0, 100)}`);
  if (entry.type === "fifo") return; // of no use in an image: whoever needs one makes it
  const there = await lstat(path).catch(() => null);
  if (there && !(there.isDirectory() && entry.type === "directory")) await removeTree(path);
  if (entry.type === "link") {
    const names = partsOf(entry.linkPath);
    const name = names.pop();
    const target = name === undefined ? place.dir : join(await folderInside(place, names, privileged), name);
    if (!(await lstat(target).catch(() => null))?.isFile())
      throw refused(`the link ${entry.path.slice(0, 100)} leads nowhere`);
    await link(target, path);
    return;
  }
  if (entry.type === "symlink") await symlink(entry.linkPath, path);
  else if (entry.type === "directory") {
    if (!there?.isDirectory()) await mkdir(path);
  } else await writeBody(path, entry);
  if (privileged) await lchown(path, idOf(entry.uid), idOf(entry.gid));
  if (entry.type !== "symlink") await chmod(path, entry.mode); // after the owner, whose change clears set-id bits
  await lutimes(path, entry.mtimeS || 0, entry.mtimeS || 0);
}

async function writeBody(path: string, entry: TarEntry): Promise<void> {
  const file = await open(path, "wx", 0o600); // exclusive: never through a link
  try {
    for await (const chunk of entry.body()) await file.write(chunk);
  } finally {
    await file.close();
  }
}

const idOf = (id: number): number => (Number.isInteger(id) && id >= 0 && id <= ID_MAX ? id : ID_MAX);

/** What an overlay needs to hide files of the layers below. */
interface Mark {
  kind: "removed" | "opaque";
  path: string;
}

/** A program has room for about this many. */
const MARKS_PER_PROGRAM = 500;

/** Character device 0/0 and an extended attribute; Node can make neither. */
async function writeMarks(spawner: Spawner, marks: Mark[], privileged: boolean): Promise<void> {
  for (let at = 0; at < marks.length; at += MARKS_PER_PROGRAM) {
    const some = marks.slice(at, at + MARKS_PER_PROGRAM);
    for (const { kind, path } of some) if (kind === "removed") await removeTree(path);
    await spawner.run("The unpacking of a layer", (program) => {
      for (const { kind, path } of some) {
        const name = privileged ? "trusted.overlay.opaque" : "user.overlay.opaque";
        if (kind === "opaque") program.step("setxattr", [path, name, "y", 1, 0], `mark ${path} as opaque`);
        else program.step("mknodat", [AT_FDCWD, path, 0o020000, 0], `mark ${path} as removed`);
      }
    });
  }
}

const refused = (reason: string): PlatformError => new PlatformError("bad_request", `The image is refused: ${reason}.`);
