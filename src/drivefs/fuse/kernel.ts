/** The kernel's protocol of FUSE: the layouts of questions and answers (linux/fuse.h, version 7.31 and later). */
import { ATTRIBUTE_BYTES } from "../attributes.ts";
import { DATA_BYTES_MAX } from "../frames.ts";
import type { NamesFrom } from "./open-folders.ts";

export const OPCODE = {
  lookup: 1,
  forget: 2,
  getattr: 3,
  setattr: 4,
  readlink: 5,
  symlink: 6,
  mknod: 8,
  mkdir: 9,
  unlink: 10,
  rmdir: 11,
  rename: 12,
  link: 13,
  open: 14,
  read: 15,
  write: 16,
  statfs: 17,
  release: 18,
  fsync: 20,
  flush: 25,
  init: 26,
  opendir: 27,
  readdir: 28,
  releasedir: 29,
  fsyncdir: 30,
  create: 35,
  interrupt: 36,
  destroy: 38,
  batchForget: 42,
  rename2: 45,
} as const;

export interface KernelRequest {
  opcode: number;
  /** As it came: the answer repeats these eight bytes. */
  unique: Buffer;
  node: bigint;
  uid: number;
  gid: number;
  /** The thread that asks. */
  pid: number;
  /** What follows the header. */
  args: Buffer;
}

const HEADER_BYTES = 40;
/** The kernel wants room for a whole write with its header. */
export const REQUEST_BYTES = DATA_BYTES_MAX + 4096;
export const ROOT_NODE = 1n;

export function parseRequest(bytes: Buffer): KernelRequest {
  return {
    opcode: bytes.readUInt32LE(4),
    unique: Buffer.from(bytes.subarray(8, 16)),
    node: bytes.readBigUInt64LE(16),
    uid: bytes.readUInt32LE(24),
    gid: bytes.readUInt32LE(28),
    pid: bytes.readUInt32LE(32),
    args: bytes.subarray(HEADER_BYTES, bytes.readUInt32LE(0)),
  };
}

/** The header of an answer; `bytes` follow it. */
export function answerHeader(unique: Buffer, errno: number, bytes: number): Buffer {
  const header = Buffer.alloc(16);
  header.writeUInt32LE(16 + bytes, 0);
  header.writeInt32LE(-errno, 4);
  unique.copy(header, 8);
  return header;
}

/** Names end with NUL. */
export function textsIn(bytes: Buffer, from: number, count: number): string[] {
  const texts: string[] = [];
  for (let at = from; texts.length < count; ) {
    const end = bytes.indexOf(0, at);
    if (end < 0) throw new Error("a name of the kernel does not end");
    texts.push(bytes.toString("latin1", at, end));
    at = end + 1;
  }
  return texts;
}

const INIT = {
  ASYNC_READ: 1n << 0n,
  BIG_WRITES: 1n << 5n,
  PARALLEL_DIROPS: 1n << 18n,
  MAX_PAGES: 1n << 22n,
  INIT_EXT: 1n << 30n,
  HAS_RESEND: 1n << 39n,
  ALLOW_IDMAP: 1n << 40n,
} as const;
const WANTED = Object.values(INIT).reduce((all, flag) => all | flag, 0n);
const MINOR = 38;
const MAX_BACKGROUND = 32;
const PAGE_BYTES = 4096;

/** Takes each feature that the kernel offers and this server uses. */
export function initAnswer(args: Buffer): Buffer {
  const offered = BigInt(args.readUInt32LE(12)) | (args.length >= 20 ? BigInt(args.readUInt32LE(16)) << 32n : 0n);
  const flags = offered & WANTED;
  const out = Buffer.alloc(64);
  out.writeUInt32LE(7, 0);
  out.writeUInt32LE(Math.min(MINOR, args.readUInt32LE(4)), 4);
  out.writeUInt32LE(args.readUInt32LE(8), 8); // read ahead as far as the kernel likes
  out.writeUInt32LE(Number(flags & 0xffff_ffffn), 12);
  out.writeUInt16LE(MAX_BACKGROUND, 16);
  out.writeUInt16LE((MAX_BACKGROUND * 3) / 4, 18);
  out.writeUInt32LE(DATA_BYTES_MAX, 20);
  out.writeUInt32LE(1, 24); // times in nanoseconds
  out.writeUInt16LE(DATA_BYTES_MAX / PAGE_BYTES, 28);
  out.writeUInt32LE(Number(flags >> 32n), 32);
  return out;
}

/** Seconds that the kernel keeps the attributes of an open file. A look at a path brings new ones at once. */
const ATTRIBUTES_SECONDS = 1n;

/**
 * Names are not kept: every look at a path asks the server that has the drive, so an open sees what was closed before
 * on any machine.
 */
export function entryAnswer(node: bigint, attributes: Buffer): Buffer {
  const out = Buffer.alloc(40 + ATTRIBUTE_BYTES);
  out.writeBigUInt64LE(node, 0);
  out.writeBigUInt64LE(ATTRIBUTES_SECONDS, 24);
  attributes.copy(out, 40);
  return out;
}

export function attributeAnswer(attributes: Buffer): Buffer {
  const out = Buffer.alloc(16 + ATTRIBUTE_BYTES);
  out.writeBigUInt64LE(ATTRIBUTES_SECONDS, 0);
  attributes.copy(out, 16);
  return out;
}

/** Without flags: the kernel drops the pages of the file at an open. */
export function openAnswer(fh: number): Buffer {
  const out = Buffer.alloc(16);
  out.writeBigUInt64LE(BigInt(fh), 0);
  return out;
}

export function spaceAnswer(space: Readonly<Record<string, number>>): Buffer {
  const out = Buffer.alloc(80);
  ["blocks", "bfree", "bavail", "files", "ffree"].forEach((name, index) => {
    out.writeBigUInt64LE(BigInt(Math.max(0, space[name] ?? 0)), index * 8);
  });
  out.writeUInt32LE(space.bsize ?? PAGE_BYTES, 40);
  out.writeUInt32LE(255, 44);
  out.writeUInt32LE(space.bsize ?? PAGE_BYTES, 48);
  return out;
}

/** Inodes are not told with names; programs ask for those that they need. */
const UNKNOWN_INODE = 0xffff_ffffn;

/** As many entries from `offset` on as have room; `first` is the place of the first entry. */
export function entriesAnswer({ first, entries }: NamesFrom, offset: number, bytesMax: number): Buffer {
  const parts: Buffer[] = [];
  let bytes = 0;
  for (let at = offset; at < first + entries.length; at++) {
    const [name, type] = entries[at - first] as [string, number];
    const size = Math.ceil((24 + name.length) / 8) * 8;
    if (bytes + size > bytesMax) break;
    const part = Buffer.alloc(size);
    part.writeBigUInt64LE(UNKNOWN_INODE, 0);
    part.writeBigUInt64LE(BigInt(at + 1), 8);
    part.writeUInt32LE(name.length, 16);
    part.writeUInt32LE(type, 20);
    part.write(name, 24, "latin1");
    parts.push(part);
    bytes += size;
  }
  return Buffer.concat(parts);
}

const RESEND_NOTIFY = 7;

/** Asks the kernel for the questions again that a process before this one took and did not answer. */
export function resendNotice(): Buffer {
  const out = Buffer.alloc(16);
  out.writeUInt32LE(16, 0);
  out.writeInt32LE(RESEND_NOTIFY, 4);
  return out;
}
