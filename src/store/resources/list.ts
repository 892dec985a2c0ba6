/**
 * One listing engine for every kind: keyset pages in four orders, search by grams, filters. The cost of a page does not
 * depend on the number of resources. Rows that exist throughout are neither skipped nor repeated, because a cursor is a
 * position in the order, not an offset.
 */
import type { CursorCodec } from "../../contract/cursor.ts";
import type { ListQuery } from "../../contract/list-query.ts";
import type { Queries } from "../database/database.ts";
import { driverOf, filtered } from "./list-filter.ts";
import { inOrder, inOrderOfFew, type ListOrder, positionAt, positionOf, type Rows, rowsOf } from "./list-order.ts";
import { fromRow, type Resource } from "./resource.ts";
import { type SearchDeps, waysToFind } from "./search.ts";
import type { ListScope } from "./search-grams.ts";
import { statusCountsIn } from "./status-counts.ts";

export interface Page {
  items: Resource[];
  hasMore: boolean;
  nextCursor: string;
  total: number;
}

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
  "r.node",
  "r.status_at",
  "r.metadata",
  "r.spec",
  "r.secrets",
  "r.state",
] as const;

/** Rows that are fetched and sorted for one page. */
const SORTED_MAX = 2000;

export interface ListDeps extends SearchDeps {
  cursors: CursorCodec;
  now(): number;
}

export async function listResources(deps: ListDeps, scope: ListScope, query: ListQuery): Promise<Page> {
  const { cursors } = deps;
  const bound = {
    ...scope,
    sort: query.sort,
    q: query.q,
    statuses: query.statuses,
    showTerminated: query.showTerminated,
    externalId: query.externalId,
    narrowedBy: query.narrowedBy,
    // Absent when not asked for: a cursor from before there were these filters is still good.
    ...(query.labels.length > 0 ? { labels: query.labels } : {}),
    ...(query.from === null ? {} : { from: query.from }),
  };
  const [by, direction] = query.sort.split(":") as [ListOrder["by"], ListOrder["direction"]];
  const begin = query.from === null ? null : positionAt(query.from, direction);
  const position = query.cursor ? positionOf(by, cursors.decode(query.cursor, bound, deps.now())) : begin;
  const backwards = query.anchorEnd;
  const order: ListOrder = { by, direction: backwards ? "asc" : direction, position };
  const { found, total } = await findPage(deps, scope, query, order);

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

/** The rows of the page plus one further row if there is one, and the total number of rows. */
async function findPage(deps: ListDeps, scope: ListScope, query: ListQuery, order: ListOrder) {
  const { database } = deps;
  const { limit, statuses } = query;
  const { read, dialect } = database;
  const driver = driverOf(query);
  const rows = filtered(rowsOf(read, scope), query, driver, dialect);
  const pageOf = (ordered: Rows) =>
    ordered
      .select(COLUMNS)
      .limit(limit + 1)
      .execute();
  const total = countOf(read, scope);
  if (driver === null) {
    if (statuses === null) return { found: await pageOf(inOrder(rows, order)), total: await total };
    const few = order.by === "name" && dialect === "sqlite" && (await areFew(deps, scope, statuses));
    if (order.by === "name")
      return { found: await pageOf((few ? inOrderOfFew : inOrder)(rows, order)), total: await total };
    // The index by status has each status in the order of creation.
    const pages = await Promise.all(
      statuses.map((status) =>
        pageOf(inOrder(filtered(rowsOf(read, scope), { ...query, statuses: [status] }, driver, dialect), order)),
      ),
    );
    const sign = order.direction === "asc" ? 1 : -1;
    const found = pages.flat().sort((a, b) => (a.uid < b.uid ? -sign : sign));
    return { found: found.slice(0, limit + 1), total: await total };
  }
  const search = { ...deps, scope, rowsInAll: await total, q: driver, limit, order };
  let found: Awaited<ReturnType<typeof pageOf>> = [];
  for await (const way of waysToFind(rows, search)) {
    found = await pageOf(way);
    if (found.length > limit) break;
  }
  return { found, total: await total };
}

/** Whether so few rows have these statuses that sorting them costs less than walking along the names. */
async function areFew({ database }: ListDeps, { workspace, kind }: ListScope, statuses: readonly string[]) {
  const { [kind]: counts = {} } = Object.fromEntries(await statusCountsIn(database, workspace));
  return statuses.reduce((sum, status) => sum + (counts[status] ?? 0), 0) <= SORTED_MAX;
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
