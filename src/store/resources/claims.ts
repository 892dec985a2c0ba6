/**
 * Words that one resource at a time may hold on the whole platform: an address of a pool, a host name. They are
 * exclusive links (see links.ts), claimed here one by one and released with the resource.
 */
import type { Database, Transaction } from "../database/database.ts";
import type { LinkOwner } from "./links.ts";

export type Claims = ReturnType<typeof createClaims>;

export function createClaims({ database }: { database: Database }) {
  /** Returns false while another resource holds the word. */
  async function take({ queries }: Transaction, owner: LinkOwner, pool: string, word: string): Promise<boolean> {
    const row = {
      uid: owner.uid,
      workspace: owner.workspace,
      kind: owner.kind,
      name: owner.name,
      target_workspace: "",
      target_kind: pool,
      target: word,
      exclusive: 1,
    };
    const inserted = await queries
      .insertInto("resource_links")
      .values(row)
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst();
    if (Number(inserted.numInsertedOrUpdatedRows ?? 0) > 0) return true;
    const mine = await queries
      .selectFrom("resource_links")
      .select("uid")
      .where("uid", "=", owner.uid)
      .where("target_kind", "=", pool)
      .where("target", "=", word)
      .executeTakeFirst();
    return mine !== undefined;
  }

  return {
    take,

    /** Claims the first free word of a pool; null when all are held. */
    async takeFirst(tx: Transaction, owner: LinkOwner, pool: string, words: readonly string[]): Promise<string | null> {
      if (words.length === 0) return null;
      const held = await tx.queries
        .selectFrom("resource_links")
        .select("target")
        .where("target_workspace", "=", "")
        .where("target_kind", "=", pool)
        .execute();
      const taken = new Set(held.map((row) => row.target));
      for (const word of words) if (!taken.has(word) && (await take(tx, owner, pool, word))) return word;
      return null;
    },

    async release({ queries }: Transaction, uid: string, pool: string): Promise<void> {
      await queries.deleteFrom("resource_links").where("uid", "=", uid).where("target_kind", "=", pool).execute();
    },

    /** The held words that equal a domain or are host names below it. Both are in the same pool. */
    async heldBelow(pool: string, domain: string): Promise<(LinkOwner & { word: string })[]> {
      const rows = await database.read
        .selectFrom("resource_links")
        .select(["uid", "workspace", "kind", "name", "target as word"])
        .where("target_workspace", "=", "")
        .where("target_kind", "=", pool)
        .where((eb) => eb.or([eb("target", "=", domain), eb("target", "like", `%.${domain}`)]))
        .execute();
      return rows;
    },

    releaseWord: (uid: string, pool: string, word: string): Promise<void> =>
      database.write(async ({ queries }) => {
        await queries
          .deleteFrom("resource_links")
          .where("uid", "=", uid)
          .where("target_kind", "=", pool)
          .where("target", "=", word)
          .execute();
      }),

    /** uids of the resources that hold these words, by word. */
    async holdersOf(pool: string, words: readonly string[]): Promise<Map<string, string>> {
      if (words.length === 0) return new Map();
      const rows = await database.read
        .selectFrom("resource_links")
        .select(["uid", "target"])
        .where("target_workspace", "=", "")
        .where("target_kind", "=", pool)
        .where("target", "in", words)
        .where("exclusive", "=", 1)
        .execute();
      return new Map(rows.map(({ target, uid }) => [target, uid]));
    },

    async holderOf(pool: string, word: string): Promise<LinkOwner | null> {
      const row = await database.read
        .selectFrom("resource_links")
        .select(["uid", "workspace", "kind", "name"])
        .where("target_workspace", "=", "")
        .where("target_kind", "=", pool)
        .where("target", "=", word)
        .where("exclusive", "=", 1)
        .executeTakeFirst();
      return row ?? null;
    },
  };
}
