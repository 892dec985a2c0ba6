/** Attributes of a file as the kernel's protocol has them (struct fuse_attr, 88 bytes, little-endian). */
import type { BigIntStats } from "node:fs";

export const ATTRIBUTE_BYTES = 88;
const SECOND_NS = 1_000_000_000n;
const BLOCK_BYTES = 4096;

export function attributesOf(stat: BigIntStats): Buffer {
  const bytes = Buffer.alloc(ATTRIBUTE_BYTES);
  [stat.ino, stat.size, stat.blocks].forEach((value, index) => void bytes.writeBigUInt64LE(value, index * 8));
  [stat.atimeNs, stat.mtimeNs, stat.ctimeNs].forEach((time, index) => {
    const parts = ((time % SECOND_NS) + SECOND_NS) % SECOND_NS;
    bytes.writeBigInt64LE((time - parts) / SECOND_NS, 24 + index * 8);
    bytes.writeUInt32LE(Number(parts), 48 + index * 4);
  });
  const { mode, nlink, uid, gid } = stat;
  [mode, nlink, uid, gid].forEach((value, index) => void bytes.writeUInt32LE(Number(value), 60 + index * 4));
  bytes.writeUInt32LE(BLOCK_BYTES, 80);
  return bytes;
}

/** Tells a file from every other of its drive, also from one that got its inode after it. */
export const identityOf = ({ ino, birthtimeNs }: BigIntStats): string => `${ino}-${birthtimeNs}`;
