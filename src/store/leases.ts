/**
 * Leases: at most one holder at a time, for a limited time, with a fencing token that only increases. An action under a
 * lease carries the token, so a holder that was paused past its lease is told from the current one.
 */
import { sql } from "kysely";
import type { Clock } from "../lib/time/clock.ts";
import type { Database } from "./database/database.ts";

export interface Lease {
  name: string;
  holder: string;
  token: number;
  expiresAt: number;
}

export type Leases = ReturnType<typeof createLeases>;

export function createLeases({ database, clock }: { database: Database; clock: Clock }) {
  return {
    /** Takes or renews the lease; null while another holder has it. */
    async acquire(name: string, holder: string, durationMs: number): Promise<Lease | null> {
      return database.write(async ({ queries }) => {
        const now = clock.now();
        const row = await queries
          .insertInto("leases")
          .values({ name, holder, token: 1, expires_at: now + durationMs })
          .onConflict((conflict) =>
            conflict
              .column("name")
              .doUpdateSet({
                holder,
                expires_at: now + durationMs,
                token: sql`CASE WHEN leases.holder = ${holder} AND leases.expires_at > ${now} THEN leases.token ELSE leases.token + 1 END`,
              })
              .where((eb) => eb.or([eb("leases.holder", "=", holder), eb("leases.expires_at", "<=", now)])),
          )
          .returningAll()
          .executeTakeFirst();
        return row ? { name, holder, token: row.token, expiresAt: row.expires_at } : null;
      });
    },

    /** Renews these leases for `durationMs` from now; returns the names that the holder still holds. */
    async renew(holder: string, names: readonly string[], durationMs: number): Promise<Set<string>> {
      const rows = await database.write(({ queries }) =>
        queries
          .updateTable("leases")
          .set({ expires_at: clock.now() + durationMs })
          .where("holder", "=", holder)
          .where("expires_at", ">", clock.now())
          .where("name", "in", names)
          .returning("name")
          .execute(),
      );
      return new Set(rows.map(({ name }) => name));
    },

    async release(lease: Lease): Promise<void> {
      await database.write(({ queries }) =>
        queries
          .updateTable("leases")
          .set({ expires_at: 0 })
          .where("name", "=", lease.name)
          .where("holder", "=", lease.holder)
          .where("token", "=", lease.token)
          .execute(),
      );
    },
  };
}
