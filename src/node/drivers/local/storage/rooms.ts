/**
 * How much each root may still grow. Roots are sparse files, and all of them together may promise more than the disk
 * has. A file system in a sparse file breaks when the disk below it is full, so the room of each is bounded at every
 * moment: together they never take more than is free, less what is kept for the server.
 *
 * Every root may first grow to GUARANTEED_BYTES, or to an equal part of what there is. The rest is for whoever needs it:
 * a workload that writes without end takes the rest, and not what others were guaranteed. A root that is frozen writes
 * nothing and does not count. The bound is a number of the file system itself (`reserved_clusters`), which `df` shows
 * inside and which turns into ENOSPC for whoever writes beyond it.
 */

export interface Root {
  usedBytes: number;
  /** Free inside, before any bound. */
  freeBytes: number;
  /** Written inside, but not to the disk yet. */
  pendingBytes: number;
}

/** What the kernel tells of the root of a workload's first process. */
interface Told {
  type: number;
  blocks: number;
  bfree: number;
  bsize: number;
}

const OVERLAY = 0x794c7630;

/**
 * A workload can lead its first process to another root, such as a tmpfs: then what is told is of another file system,
 * or nothing is. Its disk counts as empty but for what is in its file, so that its bound is too low rather than too high.
 */
export function rootOf(told: Told | null, sizeBytes: number, onDiskBytes: number): Root {
  if (told?.type !== OVERLAY)
    return { usedBytes: onDiskBytes, freeBytes: Math.max(0, sizeBytes - onDiskBytes), pendingBytes: 0 };
  const { blocks, bfree, bsize } = told;
  const usedBytes = (blocks - bfree) * bsize;
  return { usedBytes, freeBytes: bfree * bsize, pendingBytes: Math.max(0, usedBytes - onDiskBytes) };
}

export const GUARANTEED_BYTES = 256 * 1024 * 1024;

/** The room of each root, in the same order. `availableBytes`: free on the disk, less what is kept for the server. */
export function roomsOf(roots: readonly Root[], availableBytes: number, guaranteed = GUARANTEED_BYTES): number[] {
  const pending = roots.reduce((sum, { pendingBytes }) => sum + pendingBytes, 0);
  const available = Math.max(0, availableBytes - pending);
  const first = fill(
    roots.map(({ usedBytes, freeBytes }) => ({
      from: usedBytes,
      to: Math.max(usedBytes, Math.min(guaranteed, usedBytes + freeBytes)),
    })),
    available,
  );
  const left = available - first.reduce((sum, room) => sum + room, 0);
  const rest = fill(
    roots.map(({ freeBytes }, index) => ({ from: 0, to: freeBytes - (first[index] ?? 0) })),
    left,
  );
  return first.map((room, index) => room + (rest[index] ?? 0));
}

/** Raises all to one level, each from and to its own bounds, until `amount` is used up; returns what each got. */
function fill(vessels: readonly { from: number; to: number }[], amount: number): number[] {
  const raised = (level: number): number[] =>
    vessels.map(({ from, to }) => Math.min(Math.max(level, from), Math.max(from, to)) - from);
  const sum = (all: readonly number[]): number => all.reduce((total, each) => total + each, 0);
  let [low, high] = [0, Math.max(0, ...vessels.map(({ to }) => to))];
  if (sum(raised(high)) <= amount) return raised(high);
  for (let round = 0; round < ROUNDS; round++) {
    const middle = (low + high) / 2;
    if (sum(raised(middle)) <= amount) low = middle;
    else high = middle;
  }
  return raised(low);
}

/** Halvings until the level of a disk of any size is known to the byte. */
const ROUNDS = 60;
