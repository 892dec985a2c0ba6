export interface BackoffOptions {
  baseMs: number;
  maxMs: number;
}

/** Exponential back-off with full jitter: retries of many clients spread out instead of arriving together. */
export function backoffMs(
  attempt: number,
  { baseMs, maxMs }: BackoffOptions,
  random: () => number = Math.random,
): number {
  const ceiling = Math.min(maxMs, baseMs * 2 ** Math.min(attempt, 30));
  return Math.ceil(ceiling * (0.5 + random() / 2));
}
