/** What the database knows about its keys: which one it belongs to, a rotation under way, and the derivation root. */
import { randomBytes } from "node:crypto";
import { fingerprintOf } from "../../lib/sealed-box.ts";
import type { Database, Queries, Transaction } from "../database/database.ts";
import { createRecords } from "../records.ts";
import { createKeyring, type Keyring } from "./keyring.ts";

const FINGERPRINT = "secret-key-fingerprint";
const ROTATION = "secret-key-rotation";
/** Its value is sealed, with its name as the context. */
export const DERIVATION_ROOT = "derivation-root";
const NEVER = Number.MAX_SAFE_INTEGER;
const ROOT_BYTES = 32;

/** Changes of the records below; the key says which. */
export const KEY_TOPIC = "secret-key";

export interface Rotation {
  from: string;
  to: string;
  /** Rows of this table up to this key are sealed anew. */
  table: string;
  after: readonly (string | number)[] | null;
  resealed: number;
}

export interface KeyState {
  /** Of the key that the database belongs to; null for a database that was never used. */
  fingerprint: string | null;
  rotation: Rotation | null;
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
    /** Both records as they were at one moment. */
    async state(queries: Queries = database.read): Promise<KeyState> {
      const rows = await queries
        .selectFrom("records")
        .select(["key", "value"])
        .where("key", "in", [FINGERPRINT, ROTATION])
        .execute();
      return keyStateOf(rows);
    },

    /** The fingerprint that the database belongs to: this one, unless another server was faster. */
    settle: (own: string): Promise<string> =>
      records.update(FINGERPRINT, NEVER, (value) => ({ value: value ?? own, result: value ?? own })),

    writeRotation: ({ queries }: Transaction, rotation: Rotation) => write(queries, ROTATION, JSON.stringify(rotation)),

    /** The database belongs to the new key from here on. */
    async endRotation(tx: Transaction, { to }: Rotation): Promise<void> {
      await write(tx.queries, FINGERPRINT, to);
      await tx.queries.deleteFrom("records").where("key", "=", ROTATION).execute();
      tx.announce({ topic: KEY_TOPIC, key: "ended" });
    },

    /**
     * What addresses, tokens and workload secrets are derived from. It outlives every key. An installation from before
     * there was a root goes on with the key that it derived from then.
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

/** Of rows of the table `records`. */
export function keyStateOf(rows: readonly { key: string; value: string }[]): KeyState {
  const recordOf = (key: string): string | null => rows.find((row) => row.key === key)?.value || null;
  const rotation = recordOf(ROTATION);
  return {
    fingerprint: recordOf(FINGERPRINT),
    rotation: rotation === null ? null : (JSON.parse(rotation) as Rotation),
  };
}

/** The fingerprint of the key that has to seal new values. */
export const newestKey = ({ fingerprint, rotation }: KeyState): string | null => rotation?.to ?? fingerprint;

/** A keyring of keys that stay where they are. A database that was never used gets the first one. */
export const unlockWith =
  (...keys: readonly Buffer[]): Unlock =>
  async (records) =>
    createKeyring(
      { read: () => keys, settle: () => {} },
      newestKey(await records.state()) ?? fingerprintOf(keys[0] as Buffer),
    );
