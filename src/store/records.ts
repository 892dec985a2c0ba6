/** Small records that expire. A change reads and replaces one record as a whole, in a transaction. */
import type { Clock } from "../lib/time/clock.ts";
import { type Database, fixedQuery } from "./database/database.ts";

export type Records = ReturnType<typeof createRecords>;

const LOCKED = fixedQuery<{ value: string }>({
  sqlite: "SELECT value FROM records WHERE key = ?",
  postgres: "SELECT value FROM records WHERE key = ? FOR UPDATE",
});
const MAKE = fixedQuery("INSERT INTO records (key, value, expires_at) VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING");
const SET = fixedQuery("UPDATE records SET value = ?, expires_at = ? WHERE key = ?");
/** The value of a record that was just created. */
const EMPTY = "";

export function createRecords({ database, clock }: { database: Database; clock: Clock }) {
  const { dialect } = database;
  return {
    /** `change` gets the value, or null for a new record, and may run again when the transaction is retried. */
    update: <T>(
      key: string,
      expiresAtMs: number,
      change: (value: string | null) => { value: string; result: T },
    ): Promise<T> =>
      database.write(async ({ queries }) => {
        // Insert first, so that two concurrent writers lock the same row.
        await MAKE.run(queries, dialect, [key, EMPTY, expiresAtMs]);
        const row = await LOCKED.first(queries, dialect, [key]);
        const { value, result } = change(row?.value || null);
        await SET.run(queries, dialect, [value, expiresAtMs, key]);
        return result;
      }),

    async read(key: string): Promise<string | null> {
      const row = await database.read.selectFrom("records").select("value").where("key", "=", key).executeTakeFirst();
      return row?.value || null;
    },

    /** Values of all unexpired records whose key begins with `prefix`. */
    async list(prefix: string): Promise<string[]> {
      const rows = await database.read
        .selectFrom("records")
        .select("value")
        .where("key", ">=", prefix)
        .where("key", "<", `${prefix}\u{10ffff}`)
        .where("expires_at", ">=", clock.now())
        .execute();
      return rows.map(({ value }) => value);
    },

    async remove(key: string): Promise<void> {
      await database.write(({ queries }) => queries.deleteFrom("records").where("key", "=", key).execute());
    },

    async forgetExpired(): Promise<void> {
      await database.write(({ queries }) =>
        queries.deleteFrom("records").where("expires_at", "<", clock.now()).execute(),
      );
    },
  };
}
