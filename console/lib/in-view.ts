/** What a person reads before approving it: it stays as it is under their eyes, whatever the server says meanwhile. */

interface Version {
  name: string;
  hash: string;
}

export interface InView<T> {
  shown: { item: T; isReplaced: boolean }[];
  /** There are versions that are not shown. */
  hasOthers: boolean;
}

const isSame = (one: Version, other: Version): boolean => one.name === other.name && one.hash === other.hash;

/** `read` is what was shown so far; whatever is gone from `now` goes, and nothing is shown in its place. */
export function inView<T extends Version>(read: readonly T[], now: readonly T[]): InView<T> {
  const kept = read.filter(({ name }) => now.some((item) => item.name === name));
  const items = kept.length === 0 ? now : kept;
  return {
    shown: items.map((item) => ({ item, isReplaced: !now.some((other) => isSame(item, other)) })),
    hasOthers: now.some((item) => !items.some((other) => isSame(item, other))),
  };
}
