/**
 * Which tables and columns travel from one database to another. Everything does, except what a database makes for
 * itself from the rest: the search index and the row number of resources.
 */
import { sql } from "kysely";
import type { Dialect, Queries } from "../database/database.ts";
import { rowidOf } from "../resources/resource.ts";
import { gramsOf } from "../resources/search-grams.ts";
import type { BackupValue } from "./format.ts";

export interface Derived {
  columns: readonly string[];
  /** The derived columns of a row that is being restored. */
  fill(row: Record<string, BackupValue>, dialect: Dialect): Record<string, unknown>;
  /** What is kept beside the table. */
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

/** Bookkeeping of the database itself: the manifest carries it. */
const NOT_DATA = new Set(["migrations"]);

/** The tables of a backup, of those there are; others in the same database are not ours. */
export function portableTables(
  present: ReadonlyMap<string, readonly string[]>,
  own: ReadonlySet<string>,
): { name: string; columns: string[] }[] {
  return [...present]
    .filter(([name]) => own.has(name) && !NOT_DATA.has(name))
    .map(([name, columns]) => ({ name, columns: columns.filter((column) => !DERIVED[name]?.columns.includes(column)) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}
