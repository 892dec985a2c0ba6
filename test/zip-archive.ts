/** Writes zip files, also those that no zip tool would write. */
import { crc32, deflateRawSync } from "node:zlib";

export interface Member {
  path: string;
  content?: string | Buffer;
  /** As in a Unix inode: kind and permissions. */
  mode?: number;
  /** What the directory claims, where it is not the truth. */
  claims?: { size?: number; sum?: number; flags?: number };
}

/** The size or offset of a record that says: the value stands in the record's extension for 64 bits. */
const ELSEWHERE = 0xffffffff;

export function zip(members: readonly Member[], format: "zip" | "zip64" = "zip"): Buffer {
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { path, content = "", mode = 0o100644, claims = {} } of members) {
    const data = Buffer.from(content);
    const packed = deflateRawSync(data);
    const name = Buffer.from(path);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(name.length, 26);
    files.push(local, name, packed);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry[5] = 3;
    entry.writeUInt16LE(claims.flags ?? 0, 8);
    entry.writeUInt16LE(8, 10);
    entry.writeUInt32LE(claims.sum ?? crc32(data), 16);
    entry.writeUInt32LE(packed.length, 20);
    entry.writeUInt32LE(claims.size ?? data.length, 24);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt16LE(mode, 40);
    entry.writeUInt32LE(offset, 42);
    directory.push(entry, name);
    if (format === "zip64") directory.push(moveSizes(entry));
    offset += local.length + name.length + packed.length;
  }
  const entries = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(members.length, 10);
  end.writeUInt32LE(entries.length, 12);
  end.writeUInt32LE(format === "zip64" ? ELSEWHERE : offset, 16);
  const wide = format === "zip64" ? [endOf64(members.length, entries.length, offset)] : [];
  return Buffer.concat([...files, entries, ...wide, end]);
}

/** Moves the sizes and the offset of an entry into its extension, which is returned. */
function moveSizes(entry: Buffer): Buffer {
  const extension = Buffer.alloc(28);
  extension.writeUInt16LE(1, 0);
  extension.writeUInt16LE(24, 2);
  for (const [at, from] of [24, 20, 42].entries()) {
    extension.writeBigUInt64LE(BigInt(entry.readUInt32LE(from)), 4 + 8 * at);
    entry.writeUInt32LE(ELSEWHERE, from);
  }
  entry.writeUInt16LE(extension.length, 30);
  return extension;
}

/** The end record for 64 bits and the locator that leads to it. */
function endOf64(count: number, bytes: number, offset: number): Buffer {
  const end = Buffer.alloc(56);
  end.writeUInt32LE(0x06064b50, 0);
  end.writeBigUInt64LE(44n, 4);
  end.writeBigUInt64LE(BigInt(count), 24);
  end.writeBigUInt64LE(BigInt(count), 32);
  end.writeBigUInt64LE(BigInt(bytes), 40);
  end.writeBigUInt64LE(BigInt(offset), 48);
  const locator = Buffer.alloc(20);
  locator.writeUInt32LE(0x07064b50, 0);
  locator.writeBigUInt64LE(BigInt(offset + bytes), 8);
  locator.writeUInt32LE(1, 16);
  return Buffer.concat([end, locator]);
}
