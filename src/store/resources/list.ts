/**
 * One listing engine for every kind: keyset pages in four orders, search by grams, filters. The cost of a page does not
 * depend on the number of resources. Rows that exist throughout are neither skipped nor repeated, because a cursor is a
 * position in the order, not an offset.
 */
import type { CursorCodec } from "../../contract/cursor.ts";
import type { ListQuery } from "../../contract/list-query.ts";
import type { Queries } from "../database/database.ts";
import { inOrder, type ListOrder, positionOf, type Rows, rowsOf } from "./list-order.ts";
import { fromRow, type Resource } from "./resource.ts";
import { type SearchDeps, waysToFind } from "./search.ts";
import type { ListScope } from "./search-grams.ts";

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
  };
  const [by, direction] = query.sort.split(":") as [ListOrder["by"], ListOrder["direction"]];
  const position = query.cursor ? positionOf(by, cursors.decode(query.cursor, bound, deps.now())) : null;
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
  const { q, limit } = query;
  const rows = filtered(rowsOf(database.read, scope), query);
  const pageOf = (ordered: Rows) =>
    ordered
      .select(COLUMNS)
      .limit(limit + 1)
      .execute();
  if (q === null) {
    const [found, total] = await Promise.all([pageOf(inOrder(rows, order)), countOf(database.read, scope)]);
    return { found, total };
  }
  const total = await countOf(database.read, scope);
  let found: Awaited<ReturnType<typeof pageOf>> = [];
  for await (const way of waysToFind(rows, { ...deps, scope, rowsInAll: total, q, limit, order })) {
    found = await pageOf(way);
    if (found.length > limit) break;
  }
  return { found, total };
}

function filtered(rows: Rows, { statuses, showTerminated, externalId }: ListQuery): Rows {
  let left = rows;
  if (statuses) left = left.where("r.status", "in", statuses);
  else if (!showTerminated)
    left = left.where((eb) => eb.or([eb("r.status", "is", null), eb("r.status", "<>", "TERMINATED")]));
  if (externalId) left = left.where("r.external_id", "=", externalId);
  return left;
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
