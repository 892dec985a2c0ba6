/**
 * Who holds which word of a host name (contract/held-words.ts says what these words are). A row is never deleted and
 * never changes its owner; `uid` is the resource that has it now, or had it last.
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

/** One statement: takes a free word, takes an own one again, and leaves that of another alone. */
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
    /** The word that the resource has from now on; "" when there is none left that fits. */
    claim: ({ queries }: Transaction, wish: WordWish, uid: string): Promise<string> =>
      claimWord(queries, dialect, wish, uid),

    /** The word that this owner had before, whatever its natural one would be today. */
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

    /** The words of those that exist or existed, by name. */
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

/** Of the workspace as it is now: one of another account that had its name before is another. */
const ownWords = (queries: Queries, pool: WordPool, workspace: string, kind: string, names: readonly string[]) =>
  queries
    .selectFrom("held_words as h")
    .innerJoin("workspaces as w", (join) =>
      join.onRef("w.name", "=", "h.workspace").onRef("w.account_id", "=", "h.account_id"),
    )
    .select(["h.name", "h.word"])
    .where("h.pool", "=", pool)
    .where(sql<boolean>`h.pool <> 'workload'`) // says that the index of the others will do
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

/** Claims what a new workload is found by. Returns its host label where that is not the natural one. */
export async function claimAddresses(
  queries: Queries,
  dialect: Dialect,
  { uid, ...owner }: WordWish["owner"] & { uid: string },
): Promise<string | null> {
  const label = workloadWish(owner);
  if (!label) return null;
  const internal = internalWish(owner);
  if (internal) await claimWord(queries, dialect, internal, uid);
  // What is too long for DNS has a path only, and that is its own anyway.
  if (label.natural.length > DNS_LABEL_MAX) return null;
  const word = await claimWord(queries, dialect, label, uid);
  return word === label.natural ? null : word;
}

/** What a resource's state is to become, with the label that it keeps for life. */
export function keepingLabel(next: Record<string, unknown>, current: { state: Record<string, unknown> }) {
  const label = hostLabelOf(current);
  return label === undefined || HOST_LABEL in next ? next : { ...next, [HOST_LABEL]: label };
}
