/**
 * Unpacks an archive of plain files (zip, tar or tar.gz), such as code or a template, into an empty folder. Only files
 * and folders are written, only below the folder, and only within limits of number and size. Any other entry refuses
 * the whole archive with the reason.
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
}

const RULES = { pathBytesMax: 1024, depthMax: 64 };
const ZIP_MAGIC = "PK";

interface Entry {
  path: string;
  type: string;
  mode: number;
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
      else if (entry.type !== "file")
        throw refused(`${quoted(entry.path)} is a ${entry.type}; only files and folders can be sent`);
      else bytesLeft = await writeFile(tree, names, entry, bytesLeft);
    }
  } finally {
    tree.close();
  }
  return limits.bytesMax - bytesLeft;
}

async function writeFile(tree: Tree, names: string[], entry: Entry, bytesMax: number): Promise<number> {
  const name = names.at(-1);
  if (name === undefined) throw refused("a file in it has no name");
  const folder = folderOf(tree, names.slice(0, -1));
  // A repeated name is refused, so that no path leads through an entry of the archive itself.
  if (tree.lstat(folder, name)) throw refused(`${quoted(keyOf(folder, name))} is in it twice`);
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
