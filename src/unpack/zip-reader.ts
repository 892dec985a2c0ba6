/**
 * Reads a zip file entry by entry, by its central directory (yauzl, which bounds and checks the records). The checksum
 * of each entry is checked here. Encrypted entries are refused.
 */
import { crc32 } from "node:zlib";
import { type Entry, fromFdPromise, type ZipFile } from "yauzl";
import { ArchiveRefused, unreadable } from "./refusal.ts";

export interface ZipEntry {
  path: string;
  type: "file" | "directory" | "symlink" | "other";
  mode: number;
  size: number;
  body(): AsyncGenerator<Buffer>;
}

/** Names are decoded and checked by the caller, like those of every other kind of archive. */
const OPTIONS = { lazyEntries: true, autoClose: false, decodeStrings: false } as const;
/** The system that made an entry, in the upper byte of `versionMadeBy`. */
const UNIX = 3;
/** Kinds of file in the upper bits of a Unix mode. */
const KINDS: Record<number, ZipEntry["type"]> = { 0: "file", 8: "file", 4: "directory", 10: "symlink" };

/** `fd` must be open for reading and is not closed. */
export async function* readZip(fd: number): AsyncGenerator<ZipEntry> {
  try {
    const zip = await fromFdPromise(fd, OPTIONS);
    for await (const entry of zip.eachEntry()) yield entryOf(zip, entry);
  } catch (error) {
    throw refusalOf(error);
  }
}

function entryOf(zip: ZipFile, entry: Entry): ZipEntry {
  const path = entry.fileNameRaw.toString("utf8");
  const mode = entry.versionMadeBy >> 8 === UNIX ? entry.externalFileAttributes >>> 16 : 0;
  const type = path.endsWith("/") ? "directory" : (KINDS[mode >> 12] ?? "other");
  return { path, type, mode: mode & 0o777, size: entry.uncompressedSize, body: () => contentOf(zip, entry) };
}

/** Never yields more than the declared size of the entry, whatever its content inflates to. */
async function* contentOf(zip: ZipFile, entry: Entry): AsyncGenerator<Buffer> {
  let sum = 0;
  try {
    if (entry.isEncrypted()) throw unreadable("it is encrypted");
    for await (const chunk of await zip.openReadStreamPromise(entry)) {
      sum = crc32(chunk, sum);
      yield chunk;
    }
  } catch (error) {
    throw refusalOf(error);
  }
  if (sum !== entry.crc32) throw unreadable("a file in it is damaged");
}

/** An error of the archive becomes its refusal, in the library's words. An error of the machine stays as it is. */
function refusalOf(error: unknown): unknown {
  if (error instanceof ArchiveRefused || !(error instanceof Error) || "syscall" in error) return error;
  return unreadable(error.message.replace(/\.$/, ""));
}
