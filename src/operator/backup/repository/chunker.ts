/**
 * Cuts a stream where its content says so: a chunk ends where the hash of the last bytes has a chosen form. A byte that
 * is inserted changes the chunk around it and no later one, so an unchanged rest is found again in the next backup.
 */
import { createHmac } from "node:crypto";

/** Smaller chunks would cost a request each, larger ones would travel whole for a small change. */
const CHUNK_BYTES_MIN = 128 * 1024;
export const CHUNK_BYTES_MAX = 2 * 1024 * 1024;
/** A chunk ends where the upper 19 bits are zero: after 512 KB on average beyond the least size. */
const CUT_SHIFT = 13;

/** The places of cuts depend on the key, so that the sizes of chunks do not show which known file is stored. */
export type Gear = Uint32Array;

export const gearOf = (key: Buffer): Gear =>
  Uint32Array.from({ length: 256 }, (_, byte) =>
    createHmac("sha256", key).update(`gear ${byte}`).digest().readUInt32LE(0),
  );

export async function* chunksOf(source: AsyncIterable<Buffer>, gear: Gear): AsyncGenerator<Buffer> {
  let held = Buffer.allocUnsafe(CHUNK_BYTES_MAX);
  let [size, hash] = [0, 0];
  for await (const piece of source) {
    for (let at = 0; at < piece.length; ) {
      const taken = piece.copy(held, size, at, at + (CHUNK_BYTES_MAX - size));
      const { end, hash: next } = cutIn(held, size, size + taken, hash, gear);
      hash = next;
      if (end === null) {
        size += taken;
        at += taken;
        continue;
      }
      yield held.subarray(0, end);
      at += end - size;
      held = Buffer.allocUnsafe(CHUNK_BYTES_MAX); // whoever got the chunk still uses the buffer
      [size, hash] = [0, 0];
    }
  }
  if (size > 0) yield held.subarray(0, size);
}

/** Where the chunk ends; null when it goes on after `to`. */
function cutIn(
  bytes: Buffer,
  from: number,
  to: number,
  before: number,
  gear: Gear,
): { end: number | null; hash: number } {
  let hash = before;
  for (let at = Math.max(from, CHUNK_BYTES_MIN); at < to; at++) {
    hash = ((hash << 1) + (gear[bytes[at] as number] as number)) >>> 0;
    if (hash >>> CUT_SHIFT === 0) return { end: at + 1, hash: 0 };
  }
  return { end: to === CHUNK_BYTES_MAX ? to : null, hash };
}
