/**
 * The owner of each word of a host name (contract/held-words.ts defines these words). A row is never deleted and never
 * changes its owner; `uid` is the resource that uses the word now, or used it last.
 */

import { sql } from "kysely";
import { DNS_LABEL_MAX } from "../../contract/addresses.ts";
import {
  HOST_LABEL,
  hostLabelOf,
  internalWish,
  type WordOwner,
  type WordPool,
  type WordWish,
  wordsFor,
  workloadWish,
} from "../../contract/held-words.ts";
import { type Database, type Dialect, fixedQuery, type Queries, type Transaction } from "../database/database.ts";
import type { HeldWordRow } from "../database/schema.ts";

/** Claims a free word, or claims an own word again; a word of another owner stays unchanged (0 rows). */
const CLAIM = fixedQuery(
  `INSERT INTO held_words (pool, word, account_id, workspace, kind, name, uid)
   VALUES (?, ?, COALESCE((SELECT account_id FROM workspaces WHERE name = ?), ''), ?, ?, ?, ?)
   ON CONFLICT (pool, word) DO UPDATE SET uid = excluded.uid
   WHERE held_words.account_id = excluded.account_id AND held_words.workspace = excluded.workspace
     AND held_words.kind = excluded.kind AND held_words.name = excluded.name`,
);
const HOLDER = fixedQuery<HeldWordRow>("SELECT * FROM held_words WHERE pool = ? AND word = ?");

export type HeldWords = ReturnType<typeof createHeldWords>;

export function createHeldWords({ database }: { database: Database }) {
  const { read, dialect } = database;
  return {
    /** Claims a word for the resource and returns it; "" when no candidate is free. */
    claim: ({ queries }: Transaction, wish: WordWish, uid: string): Promise<string> =>
      claimWord(queries, dialect, wish, uid),

    /** The word that this owner claimed before, even if its natural word would be another one today. */
    async wordOf(
      { queries }: Transaction,
      pool: WordPool,
      { workspace, kind, name }: WordOwner,
    ): Promise<string | null> {
      const [row] = await ownWords(queries, pool, workspace, kind, [name]);
      return row?.word ?? null;
    },

    async holderOf(pool: WordPool, word: string): Promise<{ workspace: string; uid: string } | null> {
      const row = await HOLDER.first(read, dialect, [pool, word]);
      return row ? { workspace: row.workspace, uid: row.uid } : null;
    },

    /** The words of existing and deleted resources, by name. */
    async wordsOf(
      pool: WordPool,
      workspace: string,
      kind: string,
      names: readonly string[],
    ): Promise<Map<string, string>> {
      if (names.length === 0) return new Map();
      const rows = await ownWords(read, pool, workspace, kind, names);
      return new Map(rows.map(({ name, word }) => [name, word]));
    },
  };
}

/** Only words of the current workspace: an earlier workspace of the same name in another account is another owner. */
const ownWords = (queries: Queries, pool: WordPool, workspace: string, kind: string, names: readonly string[]) =>
  queries
    .selectFrom("held_words as h")
    .innerJoin("workspaces as w", (join) =>
      join.onRef("w.name", "=", "h.workspace").onRef("w.account_id", "=", "h.account_id"),
    )
    .select(["h.name", "h.word"])
    .where("h.pool", "=", pool)
    .where(sql<boolean>`h.pool <> 'workload'`) // lets the planner use the partial index
    .where("h.workspace", "=", workspace)
    .where("h.kind", "=", kind)
    .where("h.name", "in", names)
    .execute();

export async function claimWord(queries: Queries, dialect: Dialect, wish: WordWish, uid: string): Promise<string> {
  const { pool, owner } = wish;
  const { workspace, kind, name } = owner;
  for (const word of wordsFor(wish))
    if ((await CLAIM.run(queries, dialect, [pool, word, workspace, workspace, kind, name, uid])) > 0) return word;
  return "";
}

/** Claims the addresses of a new workload. Returns its host label when it is not the natural one, otherwise null. */
export async function claimAddresses(
  queries: Queries,
  dialect: Dialect,
  { uid, ...owner }: WordWish["owner"] & { uid: string },
): Promise<string | null> {
  const label = workloadWish(owner);
  if (!label) return null;
  const internal = internalWish(owner);
  if (internal) await claimWord(queries, dialect, internal, uid);
  // A label that is too long for DNS gets no host name: the workload is reached by its path, which is unique anyway.
  if (label.natural.length > DNS_LABEL_MAX) return null;
  const word = await claimWord(queries, dialect, label, uid);
  return word === label.natural ? null : word;
}

/** The next state of a resource with the host label of its current state, which never changes. */
export function keepingLabel(next: Record<string, unknown>, current: { state: Record<string, unknown> }) {
  const label = hostLabelOf(current);
  return label === undefined || HOST_LABEL in next ? next : { ...next, [HOST_LABEL]: label };
}
