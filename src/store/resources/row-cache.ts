/**
 * Rows of resources as they were last committed, so that reading one again asks nothing. Only where this process alone
 * writes to the database: every commit puts what it changed here before anybody is told of it, so the cache is never
 * behind. What is kept is the row, not what was made of it: readers change what they get.
 */
import type { ResourceRow } from "../database/schema.ts";
import type { ListScope } from "./search-grams.ts";

/** Characters of all rows together; the ones that were put in first go first. */
const SIZE_MAX = 8 * 1024 * 1024;
const SIZE_KEPT = SIZE_MAX - 256 * 1024;
/** A row beyond this would push out hundreds. */
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

  /** For many to come: finding the oldest costs more than letting it go. */
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

/** The texts of any length, and a little for the rest. */
const sizeOf = ({ metadata, spec, secrets, state, events, search }: ResourceRow): number =>
  500 + metadata.length + spec.length + (secrets?.length ?? 0) + state.length + events.length + search.length;
