/**
 * Key pairs that tokens are signed with. The private half is sealed at rest. A pair is used for a while and then
 * replaced; its public half stays known for as long as a token that it has signed may still be in use.
 */

import type { SealedBox } from "../../lib/sealed-box.ts";
import { type Clock, DAY_MS } from "../../lib/time/clock.ts";
import type { Database, Transaction } from "../database/database.ts";
import type { SigningKeyRow } from "../database/schema.ts";

/** Age at which a signing key is replaced; limits how long a leaked key is of use. */
export const SIGNING_KEY_AGE_MAX_MS = 90 * DAY_MS;
/** How long a retired public key is kept. Longer than any token lives and any client caches the public keys. */
const RETIRED_KEY_KEPT_MS = 7 * DAY_MS;

export interface KeyPair {
  id: string;
  /** JSON Web Key. */
  publicKey: string;
  /** PKCS#8, PEM. */
  privateKey: string;
}

export type SigningKeys = ReturnType<typeof createSigningKeys>;

export function createSigningKeys({ database, clock, box }: { database: Database; clock: Clock; box: SealedBox }) {
  const open = (row: SigningKeyRow): KeyPair => ({
    id: row.id,
    publicKey: row.public_key,
    privateKey: box.open(row.sealed_key, row.id),
  });

  async function newest({ queries }: Pick<Transaction, "queries">, purpose: string): Promise<SigningKeyRow | null> {
    const row = await queries
      .selectFrom("signing_keys")
      .selectAll()
      .where("purpose", "=", purpose)
      .where("created_at", ">", clock.now() - SIGNING_KEY_AGE_MAX_MS)
      .orderBy("created_at", "desc")
      .orderBy("id", "desc")
      .limit(1)
      .executeTakeFirst();
    return row ?? null;
  }

  return {
    /** The key to sign with now. A new one is generated when there is none or the last is too old. */
    async current(purpose: string, generate: () => KeyPair): Promise<KeyPair> {
      const known = await newest({ queries: database.read }, purpose);
      if (known) return open(known);
      const pair = generate();
      return database.write(async (tx) => {
        const meanwhile = await newest(tx, purpose);
        if (meanwhile) return open(meanwhile);
        await tx.queries
          .insertInto("signing_keys")
          .values({
            id: pair.id,
            purpose,
            public_key: pair.publicKey,
            sealed_key: box.seal(pair.privateKey, pair.id),
            created_at: clock.now(),
          })
          .execute();
        await tx.queries
          .deleteFrom("signing_keys")
          .where("purpose", "=", purpose)
          .where("created_at", "<", clock.now() - SIGNING_KEY_AGE_MAX_MS - RETIRED_KEY_KEPT_MS)
          .execute();
        return pair;
      });
    },

    /** Public keys of all tokens that may still be valid, newest first. */
    async publicKeys(purpose: string): Promise<string[]> {
      const rows = await database.read
        .selectFrom("signing_keys")
        .select("public_key")
        .where("purpose", "=", purpose)
        .where("created_at", ">", clock.now() - SIGNING_KEY_AGE_MAX_MS - RETIRED_KEY_KEPT_MS)
        .orderBy("created_at", "desc")
        .execute();
      return rows.map((row) => row.public_key);
    },
  };
}
