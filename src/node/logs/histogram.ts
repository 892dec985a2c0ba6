/** Lines counted over time, by how bad they are. */
import { SEVERITY } from "../../contract/log-line.ts";

export interface Histogram {
  info: number[];
  warning: number[];
  error: number[];
}

export const emptyHistogram = (buckets: number): Histogram => ({
  info: new Array<number>(buckets).fill(0),
  warning: new Array<number>(buckets).fill(0),
  error: new Array<number>(buckets).fill(0),
});

/** `place`: from 0 to 1 in the time range. */
export function countIn({ info, warning, error }: Histogram, place: number, severity: number): void {
  const at = Math.max(0, Math.min(info.length - 1, Math.floor(place * info.length)));
  const column = severity >= SEVERITY.ERROR ? error : severity >= SEVERITY.WARNING ? warning : info;
  column[at] = (column[at] ?? 0) + 1;
}

export function addHistogram(sum: Histogram, more: Histogram): void {
  for (const column of ["info", "warning", "error"] as const)
    for (const [at, count] of more[column].entries()) sum[column][at] = (sum[column][at] ?? 0) + count;
}
