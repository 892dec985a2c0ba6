/**
 * Callers that wait for a change of a resource. They share one subscription: with one each, a hundred concurrent
 * creates would each check every change of the other ninety-nine.
 */
import { type Database, RESOURCE_TOPIC } from "../database/database.ts";

export interface Waiters {
  /** Calls `wake` at every change of the resource. Returns a function that stops the calls. */
  add(uid: string, wake: () => void): () => void;
}

export function createWaiters(database: Pick<Database, "onChange">): Waiters {
  const byUid = new Map<string, Set<() => void>>();
  let unsubscribe: (() => void) | null = null;

  const wakeAll = (wakes: Iterable<() => void>): void => {
    for (const wake of [...wakes]) wake();
  };
  const subscribe = (): (() => void) =>
    database.onChange(({ topic, key }) => {
      // Notifications may have been lost, so every waiter reads again.
      if (topic === "resync") for (const wakes of byUid.values()) wakeAll(wakes);
      else if (topic === RESOURCE_TOPIC) wakeAll(byUid.get(key.slice(key.indexOf("/") + 1)) ?? []);
    });

  return {
    add(uid, wake) {
      unsubscribe ??= subscribe();
      const wakes = byUid.get(uid) ?? new Set();
      byUid.set(uid, wakes.add(wake));
      return () => {
        wakes.delete(wake);
        if (wakes.size === 0 && byUid.get(uid) === wakes) byUid.delete(uid);
        if (byUid.size > 0) return;
        unsubscribe?.();
        unsubscribe = null;
      };
    },
  };
}
