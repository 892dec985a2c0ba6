/**
 * Ways to find one page of what contains a text, the promising one first: when it does not fill the page the next one
 * is taken. Grams find candidates; the text itself decides.
 */
import { sql } from "kysely";
import type { Database } from "../database/database.ts";
import type { GramFrequencies } from "./gram-frequencies.ts";
import { inOrder, inOrderWithin, type ListOrder, type Rows } from "./list-order.ts";
import { rowidOf } from "./resource.ts";
import { gramsOfQuery, type ListScope } from "./search-grams.ts";

/**
 * Few matches are fetched and sorted; many are dense enough to be found along the index of the order. The two cost the
 * same when the matches are the root of page times rows. Beyond this many it is counting and fetching that cost.
 */
const SPARSE_MATCHES_MAX = 2000;
/**
 * Rows that are looked at along the order, as a multiple of those that hold one page if the matches lie evenly. They
 * may not: numbers in names grow with time, and what begins with a z is at the end of all names.
 */
const WALK_TIMES = 2;
/** Enough for a common text, and few. */
const WALK_MIN_ROWS = 1000;

export interface SearchDeps {
  database: Database;
  /** Null on a database that stops by itself when it has found enough. */
  frequencies: GramFrequencies | null;
}

export interface Search extends SearchDeps {
  scope: ListScope;
  /** Rows of the scope in all. */
  rowsInAll: number;
  q: string;
  limit: number;
  order: ListOrder;
}

export type Ways = AsyncGenerator<Rows, void>;

/** `rows` are those that pass all other filters. */
export const waysToFind = (rows: Rows, search: Search): Ways =>
  search.frequencies ? onPostgres(rows, search, search.frequencies) : onSqlite(rows, search);

async function* onPostgres(rows: Rows, search: Search, frequencies: GramFrequencies): Ways {
  const { q, scope, order } = search;
  const grams = gramsOfQuery(q, scope);
  const found = rows.where(sql<boolean>`strpos(r.search, ${q}) > 0`);
  const matches = await frequencies.matches(grams);
  if (matches > sparseMax(search)) yield* along(found, [walkRows(matches, search)], search);
  yield inOrder(found.where(sql<boolean>`r.grams @> ${grams}::text[]`), order);
}

async function* onSqlite(rows: Rows, search: Search): Ways {
  const { database, q, scope, order } = search;
  const found = rows.where(sql<boolean>`instr(r.search, ${q}) > 0`);
  const match = gramsOfQuery(q, scope)
    .map((gram) => `"${gram}"`)
    .join(" AND ");
  const joined = found
    .innerJoin(sql<{ rowid: number }>`resource_grams`.as("g"), (join) => join.onTrue())
    .where(sql<boolean>`g.resource_grams MATCH ${match} AND r.id = g.rowid`) as unknown as Rows;
  if (order.by === "createdAt") {
    // The search index yields rows in rowid order, which is the order of creation: a common word stops after one page.
    const { direction, position } = order;
    const than = sql.raw(direction === "asc" ? ">" : "<");
    const [uid] = position ?? [];
    const rest =
      uid === undefined ? joined : joined.where(sql<boolean>`g.rowid ${than} ${rowidOf(uid)} AND r.uid ${than} ${uid}`);
    yield rest.orderBy(sql`g.rowid`, direction);
    return;
  }
  const most = sparseMax(search);
  const some = await sql<{
    id: number;
  }>`SELECT rowid AS id FROM resource_grams WHERE resource_grams MATCH ${match} LIMIT ${most + 1}`.execute(
    database.read,
  );
  if (some.rows.length > most) {
    // At least so many; mostly there are more, and the page is near.
    yield* along(found, [WALK_MIN_ROWS, walkRows(most, search)], search);
    yield inOrder(joined, order);
  } else {
    const ids = JSON.stringify(some.rows.map((row) => row.id));
    yield inOrder(found.where(sql<boolean>`r.id IN (SELECT value FROM json_each(${ids}))`), order);
  }
}

/** Along the order, without going on to its end where there are no matches. */
async function* along(found: Rows, distances: number[], { database, scope, order, rowsInAll }: Search): Ways {
  for (const rows of distances) {
    if (rows >= rowsInAll) {
      yield inOrder(found, order);
      return;
    }
    yield inOrderWithin(found, rows, database.read, scope, order);
  }
}

const walkRows = (matches: number, { limit, rowsInAll }: Search): number =>
  Math.max(WALK_MIN_ROWS, WALK_TIMES * Math.ceil((limit * rowsInAll) / matches));

const sparseMax = ({ limit, rowsInAll }: Search): number =>
  Math.ceil(Math.min(SPARSE_MATCHES_MAX, Math.sqrt(limit * rowsInAll)));
