/**
 * The database's records about its keys: the fingerprint of its key, a rotation in progress, and the derivation root.
 */
import { randomBytes } from "node:crypto";
import { fingerprintOf } from "../../lib/sealed-box.ts";
import type { Database, Queries, Transaction } from "../database/database.ts";
import { createRecords } from "../records.ts";
import { createKeyring, type Keyring } from "./keyring.ts";

const FINGERPRINT = "secret-key-fingerprint";
const ROTATION = "secret-key-rotation";
const ROTATED = "secret-key-rotated";
/** Key of the record with the derivation root. Its value is sealed, with this key as the context. */
export const DERIVATION_ROOT = "derivation-root";
const NEVER = Number.MAX_SAFE_INTEGER;
const ROOT_BYTES = 32;

/** Changes of these records; the key says which record. */
export const KEY_TOPIC = "secret-key";

export interface Rotation {
  from: string;
  to: string;
  /** Progress: rows of this table up to this key are resealed. */
  table: string;
  after: readonly (string | number)[] | null;
  resealed: number;
}

/** How a rotation has ended. */
export interface EndedRotation {
  to: string;
  /** Values that no key opened, before and after. */
  unreadable: number;
}

export interface KeyState {
  /** Fingerprint of the database's key; null for a database that was never used. */
  fingerprint: string | null;
  rotation: Rotation | null;
  /** The last rotation that came to its end. */
  ended: EndedRotation | null;
}

/** Finds the keys of a database once its tables are up to date. */
export type Unlock = (records: KeyRecords) => Promise<Keyring>;

export type KeyRecords = ReturnType<typeof createKeyRecords>;

export function createKeyRecords(database: Database) {
  const records = createRecords({ database, clock: { now: () => Date.now() } });
  const write = (queries: Queries, key: string, value: string) =>
    queries
      .insertInto("records")
      .values({ key, value, expires_at: NEVER })
      .onConflict((conflict) => conflict.column("key").doUpdateSet({ value }))
      .execute();
  return {
    /** The records as they were at one moment. */
    async state(queries: Queries = database.read): Promise<KeyState> {
      const rows = await queries
        .selectFrom("records")
        .select(["key", "value"])
        .where("key", "in", [FINGERPRINT, ROTATION, ROTATED])
        .execute();
      return keyStateOf(rows);
    },

    /** Records the database's key on first use. Returns the recorded fingerprint, which may be another server's. */
    settle: (own: string): Promise<string> =>
      records.update(FINGERPRINT, NEVER, (value) => ({ value: value ?? own, result: value ?? own })),

    writeRotation: ({ queries }: Transaction, rotation: Rotation) => write(queries, ROTATION, JSON.stringify(rotation)),

    /** Makes the new key the database's key. */
    async endRotation(tx: Transaction, ended: EndedRotation): Promise<void> {
      await write(tx.queries, FINGERPRINT, ended.to);
      await write(tx.queries, ROTATED, JSON.stringify(ended));
      await tx.queries.deleteFrom("records").where("key", "=", ROTATION).execute();
      tx.announce({ topic: KEY_TOPIC, key: "ended" });
    },

    /**
     * The root that addresses, tokens and workload secrets are derived from. It survives key rotations. An installation
     * older than the root keeps the key that it derived from until then.
     */
    async root(keyring: Keyring, isNew: boolean): Promise<Buffer> {
      const fallback = isNew ? randomBytes(ROOT_BYTES) : keyring.keyOf(keyring.newest);
      const known = await records.read(DERIVATION_ROOT);
      const sealed =
        known ??
        (await records.update(DERIVATION_ROOT, NEVER, (value) => {
          const kept = value ?? keyring.seal(fallback.toString("hex"), DERIVATION_ROOT);
          return { value: kept, result: kept };
        }));
      return Buffer.from(keyring.open(sealed, DERIVATION_ROOT), "hex");
    },
  };
}

/** The key state in rows of the table `records`. */
export function keyStateOf(rows: readonly { key: string; value: string }[]): KeyState {
  const recordOf = (key: string): string | null => rows.find((row) => row.key === key)?.value || null;
  const [rotation, ended] = [recordOf(ROTATION), recordOf(ROTATED)];
  return {
    fingerprint: recordOf(FINGERPRINT),
    rotation: rotation === null ? null : (JSON.parse(rotation) as Rotation),
    ended: ended === null ? null : (JSON.parse(ended) as EndedRotation),
  };
}

/** The fingerprint of the key that has to seal new values. */
export const newestKey = ({ fingerprint, rotation }: KeyState): string | null => rotation?.to ?? fingerprint;

/** A keyring of fixed keys. A database that was never used gets the first one. */
export const unlockWith =
  (...keys: readonly Buffer[]): Unlock =>
  async (records) =>
    createKeyring(
      { read: () => keys, settle: () => {} },
      newestKey(await records.state()) ?? fingerprintOf(keys[0] as Buffer),
    );
