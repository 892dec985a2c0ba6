/**
 * One listing engine for every kind: keyset pages in four orders, search by grams, filters. A page costs the same
 * however many resources there are, and rows that exist throughout are neither skipped nor repeated, because a
 * cursor is a place in the order, not a count.
 */
import { type SelectQueryBuilder, sql } from "kysely";
import type { CursorCodec } from "../contract/cursor.ts";
import { PlatformError } from "../contract/errors.ts";
import type { ListQuery } from "../contract/list-query.ts";
import type { Database, Queries } from "./database.ts";
import type { GramFrequencies } from "./gram-frequencies.ts";
import { fromRow, type Resource, rowidOf } from "./resource.ts";
import type { Tables } from "./schema.ts";
import { gramsOfQuery, type ListScope } from "./search-grams.ts";

export interface Page {
  items: Resource[];
  hasMore: boolean;
  nextCursor: string;
  total: number;
}

/**
 * Few matches are fetched and sorted; many are dense enough to be found along the index of the order. The two cost the
 * same when the matches are the root of page times rows. Beyond this many it is counting and fetching that cost.
 */
const SPARSE_MATCHES_MAX = 2000;

const COLUMNS = [
  "r.uid",
  "r.workspace",
  "r.kind",
  "r.parent",
  "r.name",
  "r.slot",
  "r.external_id",
  "r.status",
  "r.generation",
  "r.observed_generation",
  "r.version",
  "r.created_at",
  "r.updated_at",
  "r.deleted_at",
  "r.created_by",
  "r.updated_by",
  "r.metadata",
  "r.spec",
  "r.secrets",
  "r.state",
] as const;

type Rows = SelectQueryBuilder<Tables & { r: Tables["resources"] }, "r", object>;

export interface ListDeps {
  database: Database;
  cursors: CursorCodec;
  /** Null on a database that stops by itself when it has found enough. */
  frequencies: GramFrequencies | null;
  now(): number;
}

export async function listResources(deps: ListDeps, scope: ListScope, query: ListQuery): Promise<Page> {
  const { database, cursors } = deps;
  const bound = {
    ...scope,
    sort: query.sort,
    q: query.q,
    statuses: query.statuses,
    showTerminated: query.showTerminated,
    externalId: query.externalId,
    narrowedBy: query.narrowedBy,
  };
  const position = query.cursor ? cursors.decode(query.cursor, bound, deps.now()) : null;
  const [by, direction] = query.sort.split(":") as ["createdAt" | "name", "asc" | "desc"];
  const backwards = query.anchorEnd;
  const order = backwards ? "asc" : direction;

  let rows = filtered(database.read, scope, query);
  if (query.q) rows = await matching(rows, deps, scope, { ...query, q: query.q }, by, order, position);
  if (position) rows = after(rows, by, order, position);
  rows = inOrder(rows, by, order, database.dialect === "sqlite" && query.q !== null);
  const [found, total] = await Promise.all([
    rows
      .select(COLUMNS)
      .limit(query.limit + 1)
      .execute(),
    countOf(database.read, scope),
  ]);

  const items = found.slice(0, query.limit).map((row) => fromRow({ ...row, events: "[]" }));
  if (backwards) items.reverse();
  const last = items.at(-1);
  const hasMore = !backwards && found.length > query.limit && last !== undefined;
  return {
    items,
    hasMore,
    nextCursor: hasMore ? cursors.encode(by === "name" ? [last.name, last.uid] : [last.uid], bound, deps.now()) : "",
    total,
  };
}

function inOrder(rows: Rows, by: "createdAt" | "name", order: "asc" | "desc", searching: boolean): Rows {
  if (by === "name") return rows.orderBy("r.name", order).orderBy("r.uid", order);
  // The search index yields rows in rowid order, which is the order of creation: a common word stops after one page.
  return searching ? rows.orderBy(sql`g.rowid`, order) : rows.orderBy("r.uid", order);
}

function filtered(queries: Queries, { workspace, kind, parent }: ListScope, query: ListQuery): Rows {
  let rows = queries
    .selectFrom("resources as r")
    .where("r.workspace", "=", workspace)
    .where("r.kind", "=", kind)
    .where("r.parent", "=", parent) as unknown as Rows;
  if (query.statuses) rows = rows.where("r.status", "in", query.statuses);
  else if (!query.showTerminated)
    rows = rows.where((eb) => eb.or([eb("r.status", "is", null), eb("r.status", "<>", "TERMINATED")]));
  if (query.externalId) rows = rows.where("r.external_id", "=", query.externalId);
  return rows;
}

function after(rows: Rows, by: "createdAt" | "name", order: "asc" | "desc", position: unknown[]): Rows {
  if (!position.every((part) => typeof part === "string") || position.length !== (by === "name" ? 2 : 1)) {
    throw new PlatformError("invalid_cursor", "cursor was made for another query. Start again without a cursor.");
  }
  const than = order === "asc" ? sql`>` : sql`<`;
  if (by === "createdAt") return rows.where(sql<boolean>`r.uid ${than} ${position[0]}`);
  return rows.where(sql<boolean>`(r.name, r.uid) ${than} (${position[0]}, ${position[1]})`);
}

/** The grams find candidates; the text itself decides. */
async function matching(
  rows: Rows,
  { database, frequencies }: ListDeps,
  scope: ListScope,
  { q, limit }: { q: string; limit: number },
  by: "createdAt" | "name",
  order: "asc" | "desc",
  position: unknown[] | null,
): Promise<Rows> {
  const grams = gramsOfQuery(q, scope);
  const sparseMax = async (): Promise<number> =>
    Math.ceil(Math.min(SPARSE_MATCHES_MAX, Math.sqrt(limit * (await countOf(database.read, scope)))));
  if (frequencies) {
    const found = rows.where(sql<boolean>`strpos(r.search, ${q}) > 0`);
    if ((await frequencies.matches(grams)) > (await sparseMax())) return found;
    return found.where(sql<boolean>`r.grams @> ${grams}::text[]`);
  }
  const exact = rows.where(sql<boolean>`instr(r.search, ${q}) > 0`);
  const match = grams.map((gram) => `"${gram}"`).join(" AND ");
  if (by === "name") {
    const most = await sparseMax();
    const sparse = await sql<{
      id: number;
    }>`SELECT rowid AS id FROM resource_grams WHERE resource_grams MATCH ${match} LIMIT ${most + 1}`.execute(
      database.read,
    );
    if (sparse.rows.length > most) return exact;
    return exact.where(
      sql<boolean>`r.id IN (SELECT value FROM json_each(${JSON.stringify(sparse.rows.map((row) => row.id))}))`,
    );
  }
  const beyond =
    position && typeof position[0] === "string"
      ? sql`AND g.rowid ${order === "asc" ? sql`>` : sql`<`} ${rowidOf(position[0])}`
      : sql``;
  return exact
    .innerJoin(sql<{ rowid: number }>`resource_grams`.as("g"), (join) => join.onTrue())
    .where(sql<boolean>`g.resource_grams MATCH ${match} AND r.id = g.rowid ${beyond}`) as unknown as Rows;
}

export async function countOf(queries: Queries, { workspace, kind, parent }: ListScope): Promise<number> {
  const row = await queries
    .selectFrom("resource_counts")
    .select("n")
    .where("workspace", "=", workspace)
    .where("kind", "=", kind)
    .where("parent", "=", parent)
    .executeTakeFirst();
  return row?.n ?? 0;
}
