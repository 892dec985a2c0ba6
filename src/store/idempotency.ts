/**
 * Idempotency keys. The first request claims the key together with the uid that its resource will get; the answer is
 * stored (sealed: it may show a secret once) and given to every retry. When the holder dies in between, the claim runs
 * out and a retry goes on with the same uid, so it finds what the first one may have created.
 */

import { uuidv7 } from "../lib/ids.ts";
import type { SealedBox } from "../lib/sealed-box.ts";
import type { Clock } from "../lib/time/clock.ts";
import { DAY_MS, MINUTE_MS } from "../lib/time/clock.ts";
import type { Database } from "./database/database.ts";

export const IDEMPOTENCY_AGE_MAX_MS = DAY_MS;
/** Lifetime of a claim. Longer than any request may take. */
const CLAIM_MS = 2 * MINUTE_MS;
export const IDEMPOTENCY_TOPIC = "idempotency";

export interface StoredAnswer {
  status: number;
  body: string;
}

export type Claim =
  | { outcome: "claimed"; uid: string }
  | { outcome: "answered"; answer: StoredAnswer }
  | { outcome: "in_progress" }
  | { outcome: "other_body" };

export type Idempotency = ReturnType<typeof createIdempotency>;

export function createIdempotency({ database, clock, box }: { database: Database; clock: Clock; box: SealedBox }) {
  return {
    async claim(scope: string, key: string, bodyHash: string, holder: string): Promise<Claim> {
      return database.write(async ({ queries }): Promise<Claim> => {
        const now = clock.now();
        const fresh = {
          scope,
          key,
          body_hash: bodyHash,
          uid: uuidv7(now),
          holder,
          claimed_until: now + CLAIM_MS,
          status: null,
          response: null,
          created_at: now,
        };
        const inserted = await queries
          .insertInto("idempotency")
          .values(fresh)
          .onConflict((conflict) => conflict.columns(["scope", "key"]).doNothing())
          .executeTakeFirst();
        if (Number(inserted.numInsertedOrUpdatedRows ?? 0) > 0) return { outcome: "claimed", uid: fresh.uid };
        const rows = queries.selectFrom("idempotency").selectAll().where("scope", "=", scope).where("key", "=", key);
        const row = await (database.dialect === "postgres" ? rows.forUpdate() : rows).executeTakeFirstOrThrow();
        if (row.created_at < now - IDEMPOTENCY_AGE_MAX_MS) {
          await queries
            .updateTable("idempotency")
            .set(fresh)
            .where("scope", "=", scope)
            .where("key", "=", key)
            .execute();
          return { outcome: "claimed", uid: fresh.uid };
        }
        if (row.body_hash !== bodyHash) return { outcome: "other_body" };
        if (row.status !== null && row.response !== null)
          return {
            outcome: "answered",
            answer: { status: row.status, body: box.open(row.response, `${scope}\0${key}`) },
          };
        if (row.claimed_until > now) return { outcome: "in_progress" };
        await queries
          .updateTable("idempotency")
          .set({ holder, claimed_until: now + CLAIM_MS })
          .where("scope", "=", scope)
          .where("key", "=", key)
          .execute();
        return { outcome: "claimed", uid: row.uid };
      });
    },

    async answer(scope: string, key: string, answer: StoredAnswer): Promise<void> {
      await database.write(async ({ queries, announce }) => {
        await queries
          .updateTable("idempotency")
          .set({ status: answer.status, response: box.seal(answer.body, `${scope}\0${key}`) })
          .where("scope", "=", scope)
          .where("key", "=", key)
          .execute();
        announce({ topic: IDEMPOTENCY_TOPIC, key: "done" });
      });
    },

    /** Frees the key after a failed request, so that a corrected request can use it. */
    async release(scope: string, key: string, holder: string): Promise<void> {
      await database.write(async ({ queries, announce }) => {
        await queries
          .deleteFrom("idempotency")
          .where("scope", "=", scope)
          .where("key", "=", key)
          .where("holder", "=", holder)
          .where("status", "is", null)
          .execute();
        announce({ topic: IDEMPOTENCY_TOPIC, key: "done" });
      });
    },

    async forgetOld(): Promise<void> {
      await database.write(({ queries }) =>
        queries
          .deleteFrom("idempotency")
          .where("created_at", "<", clock.now() - IDEMPOTENCY_AGE_MAX_MS)
          .execute(),
      );
    },
  };
}
