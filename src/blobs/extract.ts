/**
 * Unpacks an archive that a stranger made (zip, tar or tar.gz) into an empty folder. Only plain files and folders come
 * out, only below the folder, only so many and so large; anything else refuses the whole archive and says why.
 */
import { createReadStream } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import { PlatformError } from "../contract/errors.ts";
import { readTar } from "./tar-reader.ts";
import { readZip } from "./zip-reader.ts";

export interface ExtractLimits {
  entriesMax: number;
  /** Of all files together, unpacked. */
  bytesMax: number;
}

/** What a project needs without its dependencies, many times over. */
export const EXTRACT_LIMITS: ExtractLimits = { entriesMax: 50_000, bytesMax: 2 * 1024 * 1024 * 1024 };
const PATH_BYTES_MAX = 1024;
const DEPTH_MAX = 64;

interface Entry {
  path: string;
  type: string;
  mode: number;
  body(): AsyncGenerator<Buffer>;
}

/** The answer is how many bytes its files have together. */
export async function extractArchive(file: string, folder: string, limits = EXTRACT_LIMITS): Promise<number> {
  let entries = 0;
  let bytesLeft = limits.bytesMax;
  for await (const entry of await entriesOf(file)) {
    entries += 1;
    if (entries > limits.entriesMax) throw refused(`it has more than ${limits.entriesMax} entries`);
    const path = safePath(entry.path);
    if (path === "") continue;
    const target = join(folder, path);
    if (entry.type === "directory") await makeFolder(target, path);
    else if (entry.type === "file") {
      await makeFolder(dirname(target), path);
      bytesLeft = await writeEntry(entry, target, path, bytesLeft);
    } else throw refused(`'${path}' is a ${entry.type}; only files and folders can be sent`);
  }
  return limits.bytesMax - bytesLeft;
}

async function writeEntry(entry: Entry, target: string, path: string, bytesMax: number): Promise<number> {
  // "wx": a name that comes twice never leads through what the first one made.
  const mode = (entry.mode & 0o111) !== 0 ? 0o755 : 0o644;
  const output = await open(target, "wx", mode).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "EEXIST" || error.code === "EISDIR") throw refused(`'${path}' is in it twice`);
    throw error;
  });
  let left = bytesMax;
  try {
    for await (const chunk of entry.body()) {
      left -= chunk.length;
      if (left < 0) throw refused("unpacked it is too large");
      await output.write(chunk);
    }
    await output.chmod(mode);
  } finally {
    await output.close();
  }
  return left;
}

async function makeFolder(target: string, path: string): Promise<void> {
  await mkdir(target, { recursive: true, mode: 0o755 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "EEXIST" || error.code === "ENOTDIR") throw refused(`'${path}' is both a file and a folder`);
    throw error;
  });
}

/** The path as parts below the folder; "" for the folder itself. */
function safePath(path: string): string {
  if (path.includes("\0") || path.includes("\\")) throw refused("a path in it has a forbidden character");
  if (path.startsWith("/")) throw refused("a path in it is absolute");
  if (Buffer.byteLength(path) > PATH_BYTES_MAX) throw refused("a path in it is too long");
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw refused("a path in it leads out of the folder");
  if (parts.length > DEPTH_MAX) throw refused("its folders are nested too deep");
  return parts.join("/");
}

/** Told by the first bytes, whatever the sender called it. */
async function entriesOf(file: string): Promise<AsyncIterable<Entry>> {
  const handle = await open(file, "r");
  const start = Buffer.alloc(4);
  await handle.read({ buffer: start, position: 0 }).finally(() => handle.close());
  if (start.toString("latin1", 0, 2) === "PK") return readZip(file);
  const raw = createReadStream(file);
  if (start.readUInt16BE(0) !== 0x1f8b) return readTar(raw);
  // The reader of the result hears of the failure; nobody else has to.
  return readTar(gunzipped(pipeline(raw, createGunzip(), () => {})));
}

async function* gunzipped(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* source;
  } catch (error) {
    throw new PlatformError("bad_request", "The archive cannot be read: its compression is broken.", { cause: error });
  }
}

const refused = (reason: string): PlatformError =>
  new PlatformError("bad_request", `The archive was refused: ${reason}.`);
