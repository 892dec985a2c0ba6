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

export function zip(members: readonly Member[]): Buffer {
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
    offset += local.length + name.length + packed.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(members.length, 10);
  end.writeUInt32LE(Buffer.concat(directory).length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...files, ...directory, end]);
}
