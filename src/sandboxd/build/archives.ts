/** Archives that ADD unpacks: tar, plain or compressed with gzip or zstd. */
import { closeSync, fstatSync, openSync, readSync, realpathSync } from "node:fs";
import { plainBytes } from "../../unpack/bytes.ts";
import { Layer } from "../../unpack/layer.ts";
import { readTar } from "../../unpack/tar-reader.ts";
import { type BytePath, toBytes, toText } from "../files/byte-path.ts";

const HEADER_BYTES = 512;
/** First bytes of compressions that are not read here: bzip2 and xz. */
const OTHER_COMPRESSION = /^(425a68|fd377a585a)/;

export async function isArchive(path: BytePath): Promise<boolean> {
  const fd = openSync(toBytes(path), "r");
  try {
    const magic = Buffer.alloc(8);
    readSync(fd, magic, 0, magic.length, 0);
    if (OTHER_COMPRESSION.test(magic.toString("hex")) && /\.(t?[xb]z2?|tar\.\w+)$/.test(toText(path)))
      throw new Error(
        `'${toText(path)}' is compressed with bzip2 or xz, which ADD does not unpack here; use gzip or zstd`,
      );
    return isTarHeader(await firstBytes(fd));
  } finally {
    closeSync(fd);
  }
}

async function firstBytes(fd: number): Promise<Buffer> {
  const { size } = fstatSync(fd);
  let head = Buffer.alloc(0);
  try {
    for await (const chunk of plainBytes(fd, { start: 0, size })) {
      head = Buffer.concat([head, chunk]);
      if (head.length >= HEADER_BYTES) break;
    }
  } catch {
    return Buffer.alloc(0); // not what its first bytes say
  }
  return head;
}

/** The sum over a header says whether bytes are one. */
function isTarHeader(head: Buffer): boolean {
  if (head.length < HEADER_BYTES) return false;
  const bytes = head.subarray(0, HEADER_BYTES);
  const said = Number.parseInt(bytes.toString("latin1", 148, 156).replace(/[\0 ]/g, ""), 8);
  const sum = bytes.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 0x20 : byte), 0);
  return said === sum && sum > 8 * 0x20;
}

export async function unpackInto(path: BytePath, target: BytePath): Promise<void> {
  const fd = openSync(toBytes(path), "r");
  const layer = new Layer(realpathSync(toText(target)), [], process.getuid?.() === 0);
  try {
    for await (const entry of readTar(plainBytes(fd, { start: 0, size: fstatSync(fd).size }))) await layer.apply(entry);
    layer.rest();
    layer.finish();
  } finally {
    layer.close();
    closeSync(fd);
  }
}
