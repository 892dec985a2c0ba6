/**
 * `sandboxd layer-tar FOLDER [digest]`: writes an unpacked layer as the tar that a registry would send, or only its
 * digest and size. The same folder gives the same bytes every time, so that a layer is kept once, unpacked, and its
 * digest holds. The marks of an overlay become whiteouts. Nobody changes the folder meanwhile; links are not followed.
 * Devices, FIFOs, sockets, extended attributes, and names that would be whiteouts are left out.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  type BigIntStats,
  closeSync,
  constants,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
} from "node:fs";
import { isOpaque } from "../libc.ts";
import { padding, TAR_END, tarHeader } from "./tar-header.ts";

const CHUNK_BYTES = 512 * 1024;
/** Most bytes of all files, as of an image that is unpacked. A file with holes can say that it has any size. */
const LAYER_BYTES_MAX = 32 * 1024 ** 3;
const WHITEOUT = Buffer.from(".wh.");
const OPAQUE = Buffer.from(".wh..wh..opq");
const SLASH = Buffer.from("/");
const MODE_BITS = 0o7777n;

export async function runLayerTar([folder = "", only]: string[]): Promise<void> {
  if (only === "digest") return console.log(JSON.stringify(digestOf(Buffer.from(folder))));
  for (const chunk of layerTar(Buffer.from(folder)))
    if (!process.stdout.write(chunk)) await once(process.stdout, "drain");
}

function digestOf(folder: Buffer): { digest: string; sizeBytes: number } {
  const hash = createHash("sha256");
  let sizeBytes = 0;
  for (const chunk of layerTar(folder)) {
    hash.update(chunk);
    sizeBytes += chunk.length;
  }
  return { digest: `sha256:${hash.digest("hex")}`, sizeBytes };
}

function* layerTar(folder: Buffer): Generator<Buffer> {
  yield* contentsOf(folder, Buffer.alloc(0), { known: new Map(), bytesLeft: LAYER_BYTES_MAX });
  yield TAR_END;
}

interface Walk {
  /** The first path of each file with several names. */
  known: Map<string, Buffer>;
  bytesLeft: number;
}

/** `at`: the folder inside the layer. */
function* contentsOf(folder: Buffer, at: Buffer, walk: Walk): Generator<Buffer> {
  const names = readdirSync(folder, { encoding: "buffer" }).sort(Buffer.compare);
  for (const name of names) {
    if (name.subarray(0, WHITEOUT.length).equals(WHITEOUT)) continue;
    const [file, path] = [Buffer.concat([folder, SLASH, name]), Buffer.concat([at, name])];
    const stat = lstatSync(file, { bigint: true });
    const common = commonOf(stat);
    if (isRemoved(stat)) yield tarHeader({ ...WHITE, path: Buffer.concat([at, WHITEOUT, name]) });
    else if (stat.isSymbolicLink())
      yield tarHeader({ ...common, path, type: "symlink", linkPath: readlinkSync(file, { encoding: "buffer" }) });
    else if (stat.isFile()) yield* fileOf(file, path, stat, walk);
    else if (stat.isDirectory()) {
      const inside = Buffer.concat([path, SLASH]);
      yield tarHeader({ ...common, path: inside, type: "directory" });
      if (isOpaque(file)) yield tarHeader({ ...WHITE, path: Buffer.concat([inside, OPAQUE]) });
      yield* contentsOf(file, inside, walk);
    }
  }
}

const WHITE = { type: "file", mode: 0, uid: 0, gid: 0, size: 0, mtimeS: 0 } as const;

const commonOf = ({ mode, uid, gid, mtimeMs }: BigIntStats) => ({
  mode: Number(mode & MODE_BITS),
  uid: Number(uid),
  gid: Number(gid),
  size: 0,
  mtimeS: Math.floor(Number(mtimeMs) / 1000),
});

/** The mark of an overlay for a file that is removed: a character device with the number 0. */
const isRemoved = (stat: BigIntStats): boolean => stat.isCharacterDevice() && stat.rdev === 0n;

function* fileOf(file: Buffer, path: Buffer, stat: BigIntStats, walk: Walk): Generator<Buffer> {
  const key = `${stat.dev}:${stat.ino}`;
  const first = stat.nlink > 1n ? walk.known.get(key) : undefined;
  if (first) return yield tarHeader({ ...commonOf(stat), path, type: "link", linkPath: first });
  if (stat.nlink > 1n) walk.known.set(key, path);
  const size = Number(stat.size);
  walk.bytesLeft -= size;
  if (walk.bytesLeft < 0) throw new Error("the files of the layer are too large");
  yield tarHeader({ ...commonOf(stat), path, type: "file", size });
  const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    for (let left = size; left > 0; ) {
      const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, left));
      const read = readSync(fd, chunk, 0, chunk.length, null);
      if (read === 0) throw new Error("a file of the layer became shorter");
      left -= read;
      yield chunk.subarray(0, read);
    }
  } finally {
    closeSync(fd);
  }
  yield padding(size);
}
