/** The orders of a list and positions in them. A cursor is a position, not an offset. */
import { type SelectQueryBuilder, sql } from "kysely";
import { PlatformError } from "../../contract/errors.ts";
import { firstUidAt } from "../../lib/ids.ts";
import type { Queries } from "../database/database.ts";
import type { Tables } from "../database/schema.ts";
import type { ListScope } from "./search-grams.ts";

export type Rows = SelectQueryBuilder<Tables & { r: Tables["resources"] }, "r", object>;

/** The sort key of a row: name and uid when sorted by name, the uid alone when sorted by creation. */
export type Position = readonly string[];

export interface ListOrder {
  by: "createdAt" | "name";
  direction: "asc" | "desc";
  /** Sort key of the last row of the previous page; null for the first page. */
  position: Position | null;
}

export function positionOf(by: ListOrder["by"], decoded: unknown[]): Position {
  if (decoded.length === (by === "name" ? 2 : 1) && decoded.every((part) => typeof part === "string")) return decoded;
  throw new PlatformError("invalid_cursor", "cursor was made for another query. Start again without a cursor.");
}

/** The position before which a list begins at a time or a name; the rows there are part of the list. */
export function positionAt(from: number | string, direction: ListOrder["direction"]): Position {
  if (typeof from === "string") return [from, direction === "asc" ? "" : LAST];
  return [direction === "asc" ? lastUidBefore(from) : firstUidAt(from + 1)];
}

/** Sorts after every uid. */
const LAST = "~";

const lastUidBefore = (timeMs: number): string =>
  firstUidAt(timeMs - 1).replace("-7000-0000-000000000000", "-7fff-ffff-ffffffffffff");

/** All rows of a list. */
export const rowsOf = (queries: Queries, { workspace, kind, parent }: ListScope): Rows =>
  queries
    .selectFrom("resources as r")
    .where("r.workspace", "=", workspace)
    .where("r.kind", "=", kind)
    .where("r.parent", "=", parent) as unknown as Rows;

/** The rows after the previous page, in order. */
export function inOrder(rows: Rows, order: ListOrder): Rows {
  const { by, direction, position } = order;
  const rest = position ? after(rows, order, position) : rows;
  return by === "name"
    ? rest.orderBy("r.name", direction).orderBy("r.uid", direction)
    : rest.orderBy("r.uid", direction);
}

/** Like inOrder by name, for few rows: SQLite finds them by another index than that of the order, and sorts them. */
export function inOrderOfFew(rows: Rows, order: ListOrder): Rows {
  const rest = order.position ? after(rows, order, order.position) : rows;
  return rest.orderBy(sql`+r.name`, order.direction).orderBy(sql`+r.uid`, order.direction);
}

/** Like inOrder, but only among the next `next` rows of the list. Finds nothing when fewer rows are left. */
export function inOrderWithin(rows: Rows, next: number, queries: Queries, scope: ListScope, order: ListOrder): Rows {
  const until = sql.raw(order.direction === "asc" ? "<=" : ">=");
  // Selects only columns of the order's index, so that the skipped rows themselves are not read.
  const last = inOrder(rowsOf(queries, scope), order)
    .offset(next - 1)
    .limit(1);
  const bounded =
    order.by === "name"
      ? rows.where(sql<boolean>`(r.name, r.uid) ${until} (${last.select(["r.name", "r.uid"])})`)
      : rows.where(sql<boolean>`r.uid ${until} (${last.select("r.uid")})`);
  return inOrder(bounded, order);
}

function after(rows: Rows, { by, direction }: ListOrder, position: Position): Rows {
  const than = sql.raw(direction === "asc" ? ">" : "<");
  if (by === "createdAt") return rows.where(sql<boolean>`r.uid ${than} ${position[0]}`);
  return rows.where(sql<boolean>`(r.name, r.uid) ${than} (${position[0]}, ${position[1]})`);
}
