/** The filters of a list, and which of them finds candidates in the search index. */
import { sql } from "kysely";
import type { LabelFilter, ListQuery } from "../../contract/list-query.ts";
import type { Dialect } from "../database/database.ts";
import type { Rows } from "./list-order.ts";

/** The rows that pass all filters but the search for `driver`, which the search index answers. */
export function filtered(rows: Rows, query: ListQuery, driver: string | null, dialect: Dialect): Rows {
  const { statuses, showTerminated, externalId, labels, q } = query;
  let left = rows;
  if (statuses) left = left.where("r.status", "in", statuses);
  else if (!showTerminated)
    left = left.where((eb) => eb.or([eb("r.status", "is", null), eb("r.status", "<>", "TERMINATED")]));
  if (externalId) left = left.where("r.external_id", "=", externalId);
  for (const label of labels) left = left.where(hasLabel(label, dialect));
  if (q !== null && q !== driver) {
    const position = sql.raw(dialect === "postgres" ? "strpos" : "instr");
    left = left.where(sql<boolean>`${position}(r.search, ${q}) > 0`);
  }
  return left;
}

/**
 * The text to look for in the search index: the longest of the searched text and the keys and values of labels, which
 * are indexed too. Null when there is nothing to look for.
 */
export function driverOf({ q, labels }: Pick<ListQuery, "q" | "labels">): string | null {
  const words = labels.flatMap(({ key, value }) => [key.toLowerCase(), value?.toLowerCase() ?? ""]);
  const [longest = ""] = [q ?? "", ...words].sort((a, b) => b.length - a.length);
  return longest === "" ? null : longest;
}

function hasLabel({ key, value }: LabelFilter, dialect: Dialect) {
  if (dialect === "postgres") {
    const label = sql`r.metadata::jsonb -> 'labels' ->> ${key}`;
    return value === null ? sql<boolean>`(${label}) IS NOT NULL` : sql<boolean>`(${label}) = ${value}`;
  }
  const isValue = value === null ? sql`` : sql`AND value = ${value}`;
  return sql<boolean>`EXISTS (SELECT 1 FROM json_each(r.metadata, '$.labels') WHERE key = ${key} ${isValue})`;
}
