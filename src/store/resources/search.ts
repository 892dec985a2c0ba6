/**
 * Query plans for one page of resources that contain a text, the most promising one first. When a plan does not fill
 * the page the next one is tried. Grams find candidates; the text itself decides.
 */
import { sql } from "kysely";
import type { Database } from "../database/database.ts";
import type { GramFrequencies } from "./gram-frequencies.ts";
import { inOrder, inOrderWithin, type ListOrder, type Rows } from "./list-order.ts";
import { rowidOf } from "./resource.ts";
import { gramsOfQuery, type ListScope } from "./search-grams.ts";

/**
 * Upper limit for fetching and sorting all matches. More matches are dense enough to be found by walking the index of
 * the order. Both plans cost the same at sqrt(page size x rows) matches; beyond this limit counting and fetching the
 * matches dominate.
 */
const SPARSE_MATCHES_MAX = 2000;
/**
 * Rows to walk along the order, as a multiple of the rows that contain one page if matches are spread evenly. Often
 * they are not: numbers in names grow with time, and names that begin with z are at the end.
 */
const WALK_TIMES = 2;
/** Fewest rows to walk: enough for a common text, and cheap. */
const WALK_MIN_ROWS = 1000;

export interface SearchDeps {
  database: Database;
  /** Null on SQLite, which stops by itself when it has found enough. */
  frequencies: GramFrequencies | null;
}

export interface Search extends SearchDeps {
  scope: ListScope;
  /** Total number of rows in the scope. */
  rowsInAll: number;
  q: string;
  limit: number;
  order: ListOrder;
}

export type Ways = AsyncGenerator<Rows, void>;

/** `rows` are the rows that pass all other filters. */
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
    // `most` is a lower bound: usually there are more matches, so a short walk fills the page.
    yield* along(found, [WALK_MIN_ROWS, walkRows(most, search)], search);
    yield inOrder(joined, order);
  } else {
    const ids = JSON.stringify(some.rows.map((row) => row.id));
    yield inOrder(found.where(sql<boolean>`r.id IN (SELECT value FROM json_each(${ids}))`), order);
  }
}

/** Walks along the order for limited distances, so that a region without matches is not read to its end. */
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
