/** How much an image may unpack to. A small archive can hold a file system of any size. */
import { statfs } from "node:fs/promises";
import type { Budget } from "../../../../unpack/budget.ts";

/** Largest unpacked image. The largest images in common use (with graphics libraries) have 15 GB. */
const IMAGE_BYTES_MAX = 32 * 1024 ** 3;
/** Largest ratio of unpacked to packed bytes. Programs compress to a third, text to a tenth; more is a zip bomb. */
const EXPANSION_MAX = 50;
const EXPANSION_FREE_BYTES = 64 * 1024 ** 2;
const IMAGE_ENTRIES_MAX = 2_000_000;
/** Bytes of tar headers per file, with padding. */
const HEADERS_BYTES = 2048;
/** Free space that a load leaves to the workloads on this disk. */
const DISK_RESERVE_BYTES = 512 * 1024 ** 2;

/** Largest size of all files, for an image that has `packedBytes` and is unpacked into `folder`. */
export async function unpackedMax(packedBytes: number, folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  const expanded = packedBytes * EXPANSION_MAX + EXPANSION_FREE_BYTES;
  return Math.min(IMAGE_BYTES_MAX, expanded, bavail * bsize - DISK_RESERVE_BYTES);
}

export const budgetFor = (bytes: number): Budget => ({
  bytes,
  entries: IMAGE_ENTRIES_MAX,
  readBytes: bytes + IMAGE_ENTRIES_MAX * HEADERS_BYTES,
});
