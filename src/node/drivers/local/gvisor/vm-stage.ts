/**
 * The root of runsc itself: a small file system that holds the files of the workload, its mounts, and nothing else of
 * the machine. Paths are as runsc sees them; they are short, because a socket of runsc lies below.
 */
export const STAGE = {
  /** The root of the workload, and its /tmp. */
  root: "/r",
  temp: "/t",
  /** State of runsc. */
  state: "/s",
  bundle: "/b",
  /** The memory of a workload that sleeps on disk. */
  memory: "/memory",
  runsc: "/runsc",
} as const;

export const mountDir = (index: number): string => `/m${index}`;
