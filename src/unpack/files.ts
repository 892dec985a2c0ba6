/**
 * Unpacks an archive of plain files (zip, tar or tar.gz), such as code or a template, into an empty folder. Only files
 * and folders are written, only below the folder, and only within limits of number and size. Links of a tar are written
 * where the limits allow them. Any other entry refuses the whole archive with the reason.
 */
import { closeSync, fstatSync } from "node:fs";
import { plainBytes, readExactly, writeAll } from "./bytes.ts";
import { quoted, refused } from "./refusal.ts";
import { readTar } from "./tar-reader.ts";
import { type Folder, keyOf, namesIn, settle, Tree } from "./tree.ts";
import { readZip } from "./zip-reader.ts";

export interface FilesLimits {
  entriesMax: number;
  /** Limit of all files together, unpacked. */
  bytesMax: number;
  /** Write the symbolic and hard links of a tar, as the export of a volume has them. Default: refuse them. */
  links?: boolean;
}

const RULES = { pathBytesMax: 1024, depthMax: 64 };
const ZIP_MAGIC = "PK";

interface Entry {
  path: string;
  type: string;
  mode: number;
  linkPath?: string;
  mtimeS?: number;
  body(): AsyncGenerator<Buffer>;
}

/** Returns the total size of the files. `onEntry` may throw to abort. */
export async function unpackFiles(
  archive: number,
  target: string,
  limits: FilesLimits,
  onEntry: () => void = () => {},
): Promise<number> {
  const tree = new Tree(target);
  let entries = 0;
  let bytesLeft = limits.bytesMax;
  try {
    for await (const entry of entriesOf(archive)) {
      onEntry();
      entries += 1;
      if (entries > limits.entriesMax) throw refused(`it has more than ${limits.entriesMax} entries`);
      if (entry.path.includes("\\")) throw refused("a path in it has a forbidden character");
      if (entry.path.startsWith("/")) throw refused("a path in it is absolute");
      const names = namesIn(entry.path, RULES);
      if (entry.type === "directory") folderOf(tree, names);
      else if (limits.links && entry.type === "symlink" && entry.linkPath !== undefined)
        writeSymlink(tree, names, entry);
      else if (limits.links && entry.type === "link") bytesLeft = writeLink(tree, names, entry, bytesLeft);
      else if (entry.type !== "file")
        throw refused(`${quoted(entry.path)} is a ${entry.type}; only files and folders can be sent`);
      else bytesLeft = await writeFile(tree, names, entry, bytesLeft);
    }
  } finally {
    tree.close();
  }
  return limits.bytesMax - bytesLeft;
}

/** The place of a new entry. A repeated name is refused, so that no path leads through a link of the archive itself. */
function newPlace(tree: Tree, names: readonly string[]): { folder: Folder; name: string } {
  const name = names.at(-1);
  if (name === undefined) throw refused("a file in it has no name");
  const folder = folderOf(tree, names.slice(0, -1));
  if (tree.lstat(folder, name)) throw refused(`${quoted(keyOf(folder, name))} is in it twice`);
  return { folder, name };
}

/** The target is text: nothing on this machine follows it, and a workload follows it inside its own root. */
function writeSymlink(tree: Tree, names: string[], { path, linkPath = "", mtimeS = 0 }: Entry): void {
  if (linkPath === "" || linkPath.includes("\0") || Buffer.byteLength(linkPath) > RULES.pathBytesMax)
    throw refused(`the link ${quoted(path)} in it leads nowhere`);
  const { folder, name } = newPlace(tree, names);
  tree.makeLink(folder, name, linkPath, null, mtimeS);
}

/**
 * A second name of a file that came before in the same archive. It counts as much as the file, because whoever copies
 * the folder may make two files of it.
 */
function writeLink(tree: Tree, names: string[], { path, linkPath = "" }: Entry, bytesMax: number): number {
  const nowhere = refused(`the link ${quoted(path)} in it leads nowhere`);
  if (linkPath.startsWith("/")) throw nowhere;
  const target = namesIn(linkPath, RULES);
  const targetName = target.pop();
  newPlace(tree, names);
  const from = tree.find(target);
  const file = targetName !== undefined && from ? tree.lstat(from, targetName) : null;
  if (targetName === undefined || !from || !file?.isFile()) throw nowhere;
  if (file.size > bytesMax) throw refused("unpacked it is too large");
  // The way to the target may have closed the folder, so it is opened again; the tree holds both open.
  const to = tree.find(names.slice(0, -1));
  if (!to) throw nowhere;
  tree.linkFile(from, targetName, to, names.at(-1) ?? "");
  return bytesMax - file.size;
}

async function writeFile(tree: Tree, names: string[], entry: Entry, bytesMax: number): Promise<number> {
  const { folder, name } = newPlace(tree, names);
  const fd = tree.createFile(folder, name);
  let left = bytesMax;
  try {
    for await (const chunk of entry.body()) {
      left -= chunk.length;
      if (left < 0) throw refused("unpacked it is too large");
      writeAll(fd, chunk);
    }
    settle(fd, null, (entry.mode & 0o111) !== 0 ? 0o755 : 0o644, null);
  } finally {
    closeSync(fd);
  }
  return left;
}

function folderOf(tree: Tree, names: readonly string[]): Folder {
  let folder = tree.root;
  for (const name of names) {
    const there = tree.opened(folder, name) ? null : tree.lstat(folder, name);
    if (there && !there.isDirectory())
      throw refused(`${quoted(keyOf(folder, name))} is both a file and a folder in it`);
    const known: Folder | null = tree.opened(folder, name);
    if (!known && !there) settle(tree.makeFolder(folder, name).fd, null, 0o755, null);
    folder = tree.open(folder, name);
  }
  return folder;
}

/** The format is detected from the first bytes, whatever the file is called. */
function entriesOf(archive: number): AsyncIterable<Entry> | Iterable<Entry> {
  const { size } = fstatSync(archive);
  const head = readExactly(archive, { start: 0, size: Math.min(size, ZIP_MAGIC.length) });
  if (head.toString("latin1") === ZIP_MAGIC) return readZip(archive);
  return readTar(plainBytes(archive, { start: 0, size }));
}
