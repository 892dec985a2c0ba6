/**
 * Replaces the key of a database while it is in use. The steps, each durable before the next:
 *
 * 1. Every server has the new key (`requireKeyEverywhere`), and the record of the rotation is written. From here on
 *    new values are sealed with the new key, and values of both keys open.
 * 2. Every sealed column is sealed anew in batches. A batch and the cursor behind it are one transaction, so a process
 *    that is killed goes on at the batch that it had begun.
 * 3. The database refuses values of other keys, and passes follow until one finds nothing left.
 * 4. The fingerprint changes and the record goes away, in one transaction. Only then may the old key be put aside.
 *
 * Every step may be repeated, and two processes that run the same rotation do each other no harm.
 */
import { PlatformError } from "../../contract/errors.ts";
import type { Database, Transaction } from "../database/database.ts";
import { KEY_TOPIC, type KeyRecords, type Rotation } from "./key-records.ts";
import type { Keyring } from "./keyring.ts";
import { allowOtherKeys, refuseOtherKeys, requireKeyEverywhere } from "./other-servers.ts";
import { type After, type Batch, resealBatch } from "./reseal.ts";
import { nameOf, SEALED_COLUMNS, type SealedColumn } from "./sealed-columns.ts";

export type RotationStep = "begun" | "batch" | "guarded" | "ended" | "settled";

export interface RotationProgress {
  step: RotationStep;
  /** The column being resealed. */
  column: string;
  resealed: number;
}

export interface Rotated {
  resealed: number;
  /** Values that no key opened, neither before nor after. */
  unreadable: number;
}

export interface RotationDeps {
  database: Database;
  records: KeyRecords;
  keyring: Keyring;
  /** Drops the cached row of a resource that a rotation has changed. */
  forgetResource(uid: string): void;
}

export interface RotationOptions {
  /** Called after each durable step. */
  onProgress?(progress: RotationProgress): void;
  /** Called in the transaction that ends the rotation. */
  onEnd?(tx: Transaction): void;
  /** Time for other servers to say that they have the key, in milliseconds. */
  answersMs?: number;
  /** Stops the rotation after the current batch; the next start continues it. */
  signal?: AbortSignal;
}

interface Pass {
  /** Rows that were not sealed with the new key and could be opened. */
  found: number;
  unreadable: number;
}

export function createRotation({ database, records, keyring, forgetResource }: RotationDeps) {
  /** Records that a rotation to this key has begun. */
  async function begin(to: string, { answersMs }: RotationOptions): Promise<Rotation | null> {
    const { fingerprint, rotation } = await records.state();
    if (rotation === null && fingerprint === to) return null;
    if (rotation === null) {
      await requireKeyEverywhere(database, to, answersMs);
      await allowOtherKeys(database);
    }
    const begun = await database.write(async (tx) => {
      const now = await records.state(tx.queries);
      if (now.rotation === null && now.fingerprint === to) return null;
      if (now.rotation !== null && now.rotation.to !== to) throw anotherRotation(now.rotation);
      if (now.rotation !== null) return now.rotation;
      const first: Rotation = { from: now.fingerprint ?? "", to, table: "", after: null, resealed: 0 };
      await records.writeRotation(tx, first);
      tx.announce({ topic: KEY_TOPIC, key: "begun" });
      return first;
    });
    if (begun) keyring.sealWith(to);
    return begun;
  }

  /** Reseals one batch and stores the cursor in the same transaction. */
  const batchOf = (column: SealedColumn, rotation: Rotation, after: After): Promise<Batch & { total: number }> =>
    database.write(async (tx) => {
      const batch = await resealBatch(tx.queries, keyring, column, { to: rotation.to, after });
      const { rotation: now } = await records.state(tx.queries);
      const total = (now?.resealed ?? rotation.resealed) + batch.resealed;
      if (now) await records.writeRotation(tx, { ...now, table: nameOf(column), after: batch.after, resealed: total });
      if (column.table === "resources")
        tx.afterCommit(() => {
          for (const { uid } of batch.rows) forgetResource(String(uid));
        });
      return { ...batch, total };
    });

  /** Reads every sealed column once; the first pass continues from the stored cursor. */
  async function pass(rotation: Rotation, isFirst: boolean, { onProgress, signal }: RotationOptions): Promise<Pass> {
    const from = isFirst ? SEALED_COLUMNS.findIndex((column) => nameOf(column) === rotation.table) : -1;
    const sum: Pass = { found: 0, unreadable: 0 };
    for (const [index, column] of SEALED_COLUMNS.entries()) {
      if (index < from) continue;
      let after = index === from ? rotation.after : null;
      do {
        signal?.throwIfAborted();
        const batch = await batchOf(column, rotation, after);
        sum.found += batch.resealed + batch.missed;
        sum.unreadable += batch.unreadable;
        after = batch.after;
        onProgress?.({ step: "batch", column: nameOf(column), resealed: batch.total });
      } while (after !== null);
    }
    return sum;
  }

  async function end(rotation: Rotation, unreadable: number, { onEnd }: RotationOptions): Promise<number> {
    return database.write(async (tx) => {
      const { rotation: now } = await records.state(tx.queries);
      if (now?.to === rotation.to) {
        await records.endRotation(tx, { to: now.to, unreadable });
        onEnd?.(tx);
      }
      return now?.resealed ?? rotation.resealed;
    });
  }

  return async (to: string, options: RotationOptions = {}): Promise<Rotated> => {
    const rotation = await begin(to, options);
    if (rotation === null) return { resealed: 0, unreadable: 0 };
    options.onProgress?.({ step: "begun", column: "", resealed: rotation.resealed });
    await pass(rotation, true, options);
    await refuseOtherKeys(database, to);
    options.onProgress?.({ step: "guarded", column: "", resealed: rotation.resealed });
    let last = await pass(rotation, false, options);
    while (last.found > 0) last = await pass(rotation, false, options);
    const resealed = await end(rotation, last.unreadable, options);
    options.onProgress?.({ step: "ended", column: "", resealed });
    keyring.settle(to);
    options.onProgress?.({ step: "settled", column: "", resealed });
    return { resealed, unreadable: last.unreadable };
  };
}

const anotherRotation = ({ to }: Rotation): PlatformError =>
  new PlatformError(
    "conflict",
    `A rotation to the key ${to} is under way. Bring back that key (secret.key.next, or BERTH_SECRET_KEY_NEXT) and let \`berth rotate-key\` end it before you begin another.`,
  );
