/**
 * Which tables and columns a backup contains: all except the ones a database derives from other data, which are the
 * search index and the row number of resources.
 */
import { sql } from "kysely";
import type { Dialect, Queries } from "../database/database.ts";
import { rowidOf } from "../resources/resource.ts";
import { gramsOf } from "../resources/search-grams.ts";
import type { BackupValue } from "./format.ts";

export interface Derived {
  columns: readonly string[];
  /** Adds the derived columns to a row that is being restored. */
  fill(row: Record<string, BackupValue>, dialect: Dialect): Record<string, unknown>;
  /** Fills the search index kept beside the table. */
  index?(queries: Queries, dialect: Dialect, rows: readonly Record<string, BackupValue>[]): Promise<void>;
}

const gramsOfRow = (row: Record<string, BackupValue>): string[] =>
  gramsOf(String(row.search), { workspace: String(row.workspace), kind: String(row.kind), parent: String(row.parent) });

export const DERIVED: Readonly<Record<string, Derived>> = {
  resources: {
    columns: ["id", "grams"],
    fill: (row, dialect) => (dialect === "sqlite" ? { id: rowidOf(String(row.uid)) } : { grams: gramsOfRow(row) }),
    async index(queries, dialect, rows) {
      if (dialect !== "sqlite") return;
      const values = rows.map((row) => sql`(${rowidOf(String(row.uid))}, ${gramsOfRow(row).join(" ")})`);
      await sql`INSERT INTO resource_grams (rowid, grams) VALUES ${sql.join(values)}`.execute(queries);
    },
  },
};

/** Bookkeeping tables; the manifest carries their content. */
const NOT_DATA = new Set(["migrations"]);

/** The tables to back up among those present. Foreign tables in the same database are left out. */
export function portableTables(
  present: ReadonlyMap<string, readonly string[]>,
  own: ReadonlySet<string>,
): { name: string; columns: string[] }[] {
  return [...present]
    .filter(([name]) => own.has(name) && !NOT_DATA.has(name))
    .map(([name, columns]) => ({ name, columns: columns.filter((column) => !DERIVED[name]?.columns.includes(column)) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}
