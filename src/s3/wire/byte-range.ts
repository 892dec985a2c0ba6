/** The Range header: one range of bytes. Several ranges, and what is no range, give the whole object as in S3. */
import { S3Error } from "./s3-error.ts";

export interface ByteRange {
  start: number;
  /** The last byte, included. */
  end: number;
}

export function rangeOf(header: string | undefined, bytes: number): ByteRange | null {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? "") ?? [];
  if (first === "" && last === "") return null;
  const start = first === "" ? Math.max(0, bytes - Number(last)) : Number(first);
  const end = first === "" || last === "" ? bytes - 1 : Math.min(Number(last), bytes - 1);
  if (first !== "" && last !== "" && Number(last) < start) return null;
  if (start >= bytes || (first === "" && Number(last) === 0))
    throw new S3Error("InvalidRange", "The requested range is not satisfiable", { ActualObjectSize: String(bytes) });
  return { start, end };
}
