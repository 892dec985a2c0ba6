/**
 * Cache of committed resource rows. Used only where this process is the only writer: every commit puts its rows here
 * before listeners hear of it, so the cache is never stale. It holds rows, not resources, because readers modify the
 * resources they get.
 */
import type { ResourceRow } from "../database/schema.ts";
import type { ListScope } from "./search-grams.ts";

/** Characters of all rows together; the rows that were put in first are evicted first. */
const SIZE_MAX = 8 * 1024 * 1024;
const SIZE_KEPT = SIZE_MAX - 256 * 1024;
/** Larger rows are not cached: one would evict hundreds of others. */
const ROW_SIZE_MAX = 64 * 1024;

interface Kept {
  row: ResourceRow;
  slotKey: string;
  size: number;
}

export class RowCache {
  #byUid = new Map<string, Kept>();
  #bySlot = new Map<string, Kept>();
  #size = 0;

  byUid(uid: string): ResourceRow | undefined {
    return this.#byUid.get(uid)?.row;
  }

  bySlot(scope: ListScope, slot: string): ResourceRow | undefined {
    return this.#bySlot.get(slotKey(scope, slot))?.row;
  }

  put(row: ResourceRow): void {
    this.forget(row.uid);
    const size = sizeOf(row);
    if (size > ROW_SIZE_MAX) return;
    const kept = { row, slotKey: slotKey(row, row.slot), size };
    this.#byUid.set(row.uid, kept);
    this.#bySlot.set(kept.slotKey, kept);
    this.#size += size;
    if (this.#size > SIZE_MAX) this.#makeRoom();
  }

  /** Evicts down to SIZE_KEPT at once: finding the oldest entry costs more than removing it. */
  #makeRoom(): void {
    for (const uid of this.#byUid.keys()) {
      if (this.#size <= SIZE_KEPT) return;
      this.forget(uid);
    }
  }

  forget(uid: string): void {
    const kept = this.#byUid.get(uid);
    if (!kept) return;
    this.#byUid.delete(uid);
    if (this.#bySlot.get(kept.slotKey) === kept) this.#bySlot.delete(kept.slotKey);
    this.#size -= kept.size;
  }
}

const slotKey = ({ workspace, kind, parent }: ListScope, slot: string): string =>
  `${workspace}\0${kind}\0${parent}\0${slot}`;

/** The lengths of the variable texts, and 500 for everything else. */
const sizeOf = ({ metadata, spec, secrets, state, events, search }: ResourceRow): number =>
  500 + metadata.length + spec.length + (secrets?.length ?? 0) + state.length + events.length + search.length;
