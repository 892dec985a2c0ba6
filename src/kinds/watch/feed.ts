/**
 * The latest changes of all resources, as this server hears of them. It remembers a few thousand, so that a client that
 * was away for a moment gets what it missed. An id is good only on the server that gave it: another server, or this one
 * after a restart, knows nothing of the id, and the client reads its lists again.
 */

import { randomWord } from "../../lib/ids.ts";
import type { Running } from "../../lib/lifecycle.ts";
import type { ResourceChange } from "../../store/resources/change-key.ts";
import type { Store } from "../../store/store.ts";

/** Changes to remember: about 300 bytes each, some seconds of a busy server. */
const REMEMBERED_MAX = 2048;

export interface Told extends ResourceChange {
  id: string;
}

export interface FeedListener {
  changed(change: Told): void;
  /** Changes may have been missed. */
  gap(): void;
}

export interface Feed extends Running {
  /** The id of the latest change. */
  readonly latest: string;
  /** The changes after this id; null when the feed does not remember that far, or does not know the id. */
  since(id: string): Told[] | null;
  subscribe(listener: FeedListener): () => void;
}

export function createFeed({ resources }: Pick<Store, "resources">): Feed {
  const listeners = new Set<FeedListener>();
  const remembered: Told[] = [];
  /** The last version told of a resource: on PostgreSQL a server hears of its own changes twice. */
  const versions = new Map<string, number | null>();
  let era = randomWord(8);
  let count = 0;
  const idOf = (at: number): string => `${era}-${at}`;

  const heard = (change: ResourceChange | null): void => {
    if (change === null) {
      era = randomWord(8);
      remembered.length = 0;
      versions.clear();
      for (const { gap } of [...listeners]) gap();
      return;
    }
    const { uid, version } = change;
    const last = versions.get(uid);
    if (last === null || (last !== undefined && version !== null && version <= last)) return;
    versions.set(uid, version);
    count += 1;
    const told = { ...change, id: idOf(count) };
    remembered.push(told);
    if (remembered.length > REMEMBERED_MAX) forgetOldest();
    for (const { changed } of [...listeners]) changed(told);
  };

  function forgetOldest(): void {
    const oldest = remembered.shift();
    if (oldest && versions.get(oldest.uid) === oldest.version) versions.delete(oldest.uid);
  }

  // Nobody has to pay for a feed that nobody reads: it begins with the first reader.
  let unsubscribe: (() => void) | null = null;

  return {
    get latest() {
      return idOf(count);
    },

    since(id) {
      const [givenEra, text = ""] = id.split("-");
      const at = Number(text);
      const first = count - remembered.length;
      if (givenEra !== era || !Number.isInteger(at) || at < first || at > count) return null;
      return remembered.slice(at - first);
    },

    subscribe(listener) {
      unsubscribe ??= resources.onEveryChangeAcrossWorkspaces(heard);
      listeners.add(listener);
      return () => listeners.delete(listener);
    },

    async stop() {
      unsubscribe?.();
      listeners.clear();
    },
  };
}
