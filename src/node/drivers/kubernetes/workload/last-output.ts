/** The output of a workload that has ended: frames in the log of its container; see `OutputFrame`. */
import { z } from "zod";
import type { OutputFrame } from "../../../../contract/sandbox-wire.ts";
import type { Output } from "../../../workload.ts";

const frameSchema: z.ZodType<OutputFrame> = z.object({
  berth: z.enum(["stdout", "stderr"]),
  at: z.number().int().min(0),
  size: z.number().int().min(0),
  data: z.string(),
});

/** Bytes before the first frame were dropped and read as an empty part. */
export function outputIn(log: string, stream: OutputFrame["berth"], offset: number, bytesMax: number): Output {
  let size = 0;
  const parts: Buffer[] = [];
  let left = bytesMax;
  let next = offset;
  for (const line of log.split("\n")) {
    const frame = frameOf(line);
    if (frame?.berth !== stream) continue;
    size = frame.size;
    const bytes = Buffer.from(frame.data, "base64");
    if (frame.at + bytes.length <= next || left === 0) continue;
    // After a gap, which the reader cannot be shown, the output goes on with what is there.
    const part = bytes.subarray(Math.max(0, next - frame.at)).subarray(0, left);
    if (frame.at > next && parts.length > 0) break;
    parts.push(part);
    left -= part.length;
    next = Math.max(next, frame.at) + part.length;
  }
  return { bytes: Buffer.concat(parts), size };
}

function frameOf(line: string): OutputFrame | null {
  if (!line.startsWith('{"berth":"std')) return null;
  try {
    return frameSchema.parse(JSON.parse(line));
  } catch {
    return null;
  }
}
