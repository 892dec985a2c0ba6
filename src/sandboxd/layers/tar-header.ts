/** Headers of a tar that every reader takes the same way: ustar, with a pax header where a value does not fit. */

export interface HeaderEntry {
  /** Relative, as the bytes of the file system; a folder ends with a slash. */
  path: Buffer;
  type: "file" | "link" | "symlink" | "directory";
  linkPath?: Buffer;
  mode: number;
  uid: number;
  gid: number;
  size: number;
  mtimeS: number;
}

const BLOCK = 512;
const NAME_BYTES = 100;
const OWNER_MAX = 8 ** 7 - 1;
const SIZE_MAX = 8 ** 11 - 1;
const TYPE_FLAGS = { file: "0", link: "1", symlink: "2", directory: "5" } as const;
const PAX = "x";

export const padding = (size: number): Buffer => Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);

/** Two blocks of zeros end a tar. */
export const TAR_END = Buffer.alloc(2 * BLOCK);

export function tarHeader(entry: HeaderEntry): Buffer {
  const { path, linkPath = Buffer.alloc(0), size, uid, gid, mtimeS } = entry;
  const records: Buffer[] = [];
  const note = (key: string, value: Buffer | number): number => records.push(record(key, value));
  if (!fits(path)) note("path", path);
  if (!fits(linkPath)) note("linkpath", linkPath);
  if (size > SIZE_MAX) note("size", size);
  if (uid > OWNER_MAX) note("uid", uid);
  if (gid > OWNER_MAX) note("gid", gid);
  if (mtimeS < 0 || mtimeS > SIZE_MAX) note("mtime", mtimeS);
  const plain = block(TYPE_FLAGS[entry.type], { ...entry, linkPath });
  if (records.length === 0) return plain;
  const extended = Buffer.concat(records);
  const described = { ...entry, path: Buffer.from("pax"), linkPath: Buffer.alloc(0), size: extended.length };
  return Buffer.concat([block(PAX, described), extended, padding(extended.length), plain]);
}

/** Names that are not ASCII are told in UTF-8 by pax alone. */
const fits = (name: Buffer): boolean => name.length <= NAME_BYTES && name.every((byte) => byte < 0x80);

function record(key: string, value: Buffer | number): Buffer {
  const rest = Buffer.concat([
    Buffer.from(` ${key}=`),
    Buffer.isBuffer(value) ? value : Buffer.from(String(value)),
    LF,
  ]);
  // The length counts its own digits.
  let length = rest.length;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

const LF = Buffer.from("\n");

function block(
  flag: string,
  { path, linkPath, mode, uid, gid, size, mtimeS }: HeaderEntry & { linkPath: Buffer },
): Buffer {
  const bytes = Buffer.alloc(BLOCK);
  path.copy(bytes, 0, 0, NAME_BYTES);
  octal(bytes, 100, 8, mode);
  octal(bytes, 108, 8, Math.min(uid, OWNER_MAX));
  octal(bytes, 116, 8, Math.min(gid, OWNER_MAX));
  octal(bytes, 124, 12, Math.min(size, SIZE_MAX));
  octal(bytes, 136, 12, Math.min(Math.max(0, mtimeS), SIZE_MAX));
  bytes.write(" ".repeat(8), 148);
  bytes.write(flag, 156);
  linkPath.copy(bytes, 157, 0, NAME_BYTES);
  bytes.write("ustar\x0000", 257);
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return bytes;
}

const octal = (bytes: Buffer, at: number, length: number, value: number): number =>
  bytes.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at, "latin1");
