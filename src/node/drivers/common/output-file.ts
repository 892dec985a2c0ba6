/** Reads what a workload wrote into a file of the folder that is shared with it. */
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { Output } from "../../workload.ts";

export const OUTPUT_FILES = { stdout: "stdout.log", stderr: "stderr.log" } as const;

/** The workload can write to the folder, so links are not followed and opening never blocks. */
export async function readOutputFile(
  runDir: string,
  stream: "stdout" | "stderr",
  offset: number,
  bytesMax: number,
): Promise<Output> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const empty = { bytes: Buffer.alloc(0), size: 0 };
  const file = await open(join(runDir, OUTPUT_FILES[stream]), flags).catch(() => null);
  if (!file) return empty; // nothing was written yet, or the path is no longer a file
  try {
    const stat = await file.stat();
    if (!stat.isFile()) return empty;
    const length = Math.max(0, Math.min(bytesMax, stat.size - offset));
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset);
    return { bytes: buffer.subarray(0, bytesRead), size: stat.size };
  } finally {
    await file.close();
  }
}
