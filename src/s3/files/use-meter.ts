/** Counts what drives hold against the quota of their workspace. */
import { S3Error } from "../wire/s3-error.ts";

export interface UseMeter {
  /** Counts a write that is about to happen. Answers why it may not, and counts nothing then. */
  take(bytes: number, objects: number): string | null;
  /** Counts what has happened; negative for what was removed. */
  add(bytes: number, objects: number): void;
}

export const NO_METER: UseMeter = { take: () => null, add() {} };

export function requireQuota(meter: UseMeter, bytes: number, objects: number): void {
  const refusal = meter.take(bytes, objects);
  if (refusal !== null) throw new S3Error("QuotaExceeded", refusal);
}
