/**
 * CRC-32C and CRC-64/NVME over a stream of bytes, eight bytes at a time by tables. Node has only CRC-32. A 64-bit value
 * is kept as two 32-bit halves: arithmetic with BigInt takes a hundred times as long.
 */
const LANES = 8;

export interface Crc {
  update(bytes: Uint8Array): void;
  /** Big-endian, as S3 writes checksums. */
  digest(): Buffer;
}

const CRC32C_POLYNOMIAL = 0x82f63b78;
/** The reversed polynomial of CRC-64/NVME, high and low half. */
const NVME = { high: 0x9a6c9329, low: 0xac4bc9b5 };

export function createCrc32c(): Crc {
  const tables = crc32cTables();
  let crc = 0xffffffff;
  return {
    update(bytes) {
      const [t0, t1, t2, t3, t4, t5, t6, t7] = tables;
      let at = 0;
      for (const end = bytes.length - LANES; at <= end; at += LANES) {
        const low = crc ^ word(bytes, at);
        const high = word(bytes, at + 4);
        crc =
          look(t7, low) ^
          look(t6, low >>> 8) ^
          look(t5, low >>> 16) ^
          look(t4, low >>> 24) ^
          look(t3, high) ^
          look(t2, high >>> 8) ^
          look(t1, high >>> 16) ^
          look(t0, high >>> 24);
      }
      for (; at < bytes.length; at += 1) crc = look(t0, crc ^ (bytes[at] as number)) ^ (crc >>> 8);
    },
    digest() {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(~crc >>> 0);
      return bytes;
    },
  };
}

export function createCrc64Nvme(): Crc {
  const { high: highs, low: lows } = crc64Tables();
  let [high, low] = [0xffffffff, 0xffffffff];
  return {
    update(bytes) {
      const [h0, l0] = [highs[0], lows[0]];
      let at = 0;
      for (const end = bytes.length - LANES; at <= end; at += LANES) {
        const first = low ^ word(bytes, at);
        const second = high ^ word(bytes, at + 4);
        let [nextHigh, nextLow] = [0, 0];
        for (let lane = 0; lane < 4; lane += 1) {
          const shift = lane * 8;
          nextHigh ^= look(highs[7 - lane], first >>> shift) ^ look(highs[3 - lane], second >>> shift);
          nextLow ^= look(lows[7 - lane], first >>> shift) ^ look(lows[3 - lane], second >>> shift);
        }
        [high, low] = [nextHigh, nextLow];
      }
      for (; at < bytes.length; at += 1) {
        const index = low ^ (bytes[at] as number);
        low = ((low >>> 8) | (high << 24)) ^ look(l0, index);
        high = (high >>> 8) ^ look(h0, index);
      }
    },
    digest() {
      const bytes = Buffer.alloc(8);
      bytes.writeUInt32BE(~high >>> 0);
      bytes.writeUInt32BE(~low >>> 0, 4);
      return bytes;
    },
  };
}

const word = (bytes: Uint8Array, at: number): number =>
  (bytes[at] as number) |
  ((bytes[at + 1] as number) << 8) |
  ((bytes[at + 2] as number) << 16) |
  ((bytes[at + 3] as number) << 24);

const look = (table: Int32Array | undefined, index: number): number => table?.[index & 0xff] ?? 0;

let knownCrc32c: Int32Array[] | undefined;

function crc32cTables(): Int32Array[] {
  knownCrc32c ??= laneTables((index) => {
    let crc = index;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ CRC32C_POLYNOMIAL : crc >>> 1;
    return { high: 0, low: crc };
  }).low;
  return knownCrc32c;
}

let knownCrc64: Tables | undefined;

function crc64Tables(): Tables {
  knownCrc64 ??= laneTables((index) => {
    let [high, low] = [0, index];
    for (let bit = 0; bit < 8; bit += 1) {
      const isOdd = low & 1;
      low = (low >>> 1) | (high << 31);
      high >>>= 1;
      if (isOdd) [high, low] = [high ^ NVME.high, low ^ NVME.low];
    }
    return { high, low };
  });
  return knownCrc64;
}

interface Tables {
  high: Int32Array[];
  low: Int32Array[];
}

/** Table n continues table 0 by n zero bytes. */
function laneTables(first: (index: number) => { high: number; low: number }): Tables {
  const made = (): Int32Array[] => Array.from({ length: LANES }, () => new Int32Array(256));
  const tables: Tables = { high: made(), low: made() };
  for (let index = 0; index < 256; index += 1) {
    let { high, low } = first(index);
    const { high: highOf, low: lowOf } = { high: tables.high, low: tables.low };
    for (let lane = 0; lane < LANES; lane += 1) {
      if (lane > 0) {
        const step = first(low & 0xff);
        low = ((low >>> 8) | (high << 24)) ^ step.low;
        high = (high >>> 8) ^ step.high;
      }
      (highOf[lane] as Int32Array)[index] = high;
      (lowOf[lane] as Int32Array)[index] = low;
    }
  }
  return tables;
}
