/** A zip archive of files as they are, without compression: what is deployed from a browser is small. */

export interface ZipFile {
  path: string;
  bytes: Uint8Array<ArrayBuffer>;
}

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;
/** Version 2.0 of the format. */
const VERSION = 20;
/** Paths are UTF-8. */
const UTF8 = 0x0800;
/** The first of January 1980, the earliest date of the format. */
const DATE = 0x0021;

export function zipOf(files: readonly ZipFile[]): Blob {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const entries: Uint8Array<ArrayBuffer>[] = [];
  let offset = 0;
  for (const { path, bytes } of files) {
    const name = new TextEncoder().encode(path);
    const crc = crcOf(bytes);
    const common = [
      [2, VERSION],
      [2, UTF8],
      [2, 0],
      [2, 0],
      [2, DATE],
      [4, crc],
      [4, bytes.length],
      [4, bytes.length],
    ];
    const local = record([[4, LOCAL], ...common, [2, name.length], [2, 0]]);
    entries.push(
      record([
        [4, CENTRAL],
        [2, VERSION],
        ...common,
        [2, name.length],
        [2, 0],
        [2, 0],
        [2, 0],
        [2, 0],
        [4, 0],
        [4, offset],
      ]),
      name,
    );
    parts.push(local, name, bytes);
    offset += local.length + name.length + bytes.length;
  }
  const size = entries.reduce((sum, { length }) => sum + length, 0);
  const count = files.length;
  const end = record([
    [4, END],
    [2, 0],
    [2, 0],
    [2, count],
    [2, count],
    [4, size],
    [4, offset],
    [2, 0],
  ]);
  return new Blob([...parts, ...entries, end], { type: "application/zip" });
}

/** Numbers of two or four bytes, the lowest byte first. */
function record(fields: readonly (readonly number[])[]): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(fields.reduce((sum, [width = 0]) => sum + width, 0)));
  let at = 0;
  for (const [width = 0, value = 0] of fields) {
    if (width === 2) view.setUint16(at, value, true);
    else view.setUint32(at, value, true);
    at += width;
  }
  return new Uint8Array(view.buffer);
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

function crcOf(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ (TABLE[(crc ^ byte) & 0xff] ?? 0);
  return (crc ^ 0xffffffff) >>> 0;
}
