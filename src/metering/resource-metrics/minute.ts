/** What one node observed of one resource in one minute. Minutes are added up into longer steps. */

export interface Minute {
  /** Processor time that the instances used, and the time over which it was measured. */
  cpuMs: number;
  measuredMs: number;
  /** The most memory that the instances used together. */
  memoryBytes: number;
  /** The most space that the files of the instances took together; absent where it was not measured. */
  diskBytes?: number;
  requests: number;
  /** Requests that ended with a status of 500 or above, or without one because the platform cut them off. */
  errors: number;
  /** Requests that waited for a start or a thaw. */
  coldStarts: number;
  /** Requests by the bin of their duration; see `binOf`. */
  durations: Record<number, number>;
}

export const emptyMinute = (): Minute => ({
  cpuMs: 0,
  measuredMs: 0,
  memoryBytes: 0,
  requests: 0,
  errors: 0,
  coldStarts: 0,
  durations: {},
});

export function addMinute(sum: Minute, more: Minute): void {
  sum.cpuMs += more.cpuMs;
  sum.measuredMs += more.measuredMs;
  sum.memoryBytes = Math.max(sum.memoryBytes, more.memoryBytes);
  if (more.diskBytes !== undefined) sum.diskBytes = Math.max(sum.diskBytes ?? 0, more.diskBytes);
  sum.requests += more.requests;
  sum.errors += more.errors;
  sum.coldStarts += more.coldStarts;
  for (const [bin, count] of Object.entries(more.durations)) addDuration(sum, Number(bin), count);
}

export const addDuration = (minute: Minute, bin: number, count = 1): void => {
  minute.durations[bin] = (minute.durations[bin] ?? 0) + count;
};

/** Bins for each doubling of a duration: a percentile is off by at most 9 %. */
const BINS_PER_DOUBLING = 4;
/** The last bin holds everything from three hours on. */
const BIN_MAX = 94;

/** Bin 0 holds everything below a millisecond. */
export const binOf = (durationMs: number): number =>
  durationMs < 1 ? 0 : Math.min(BIN_MAX, 1 + Math.floor(BINS_PER_DOUBLING * Math.log2(durationMs)));

/** The duration in the middle of a bin. */
const durationOf = (bin: number): number => (bin === 0 ? 0.5 : 2 ** ((bin - 0.5) / BINS_PER_DOUBLING));

/** The duration that this part of the requests stayed below; null without requests. */
export function percentileOf(durations: Readonly<Record<number, number>>, part: number): number | null {
  const bins = Object.entries(durations)
    .map(([bin, count]) => [Number(bin), count] as const)
    .sort(([a], [b]) => a - b);
  const total = bins.reduce((sum, [, count]) => sum + count, 0);
  let seen = 0;
  for (const [bin, count] of bins) {
    seen += count;
    if (seen >= part * total) return durationOf(bin);
  }
  return null;
}
