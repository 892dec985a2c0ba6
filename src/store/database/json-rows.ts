/**
 * Many rows as one parameter: JSON that the database unpacks itself. The SQL text is the same for every batch size, so
 * it is prepared once, and no batch exceeds the limit on parameters.
 */
import { type RawBuilder, sql } from "kysely";
import type { Dialect } from "./database.ts";

export type JsonColumn = "text" | "bigint";

/** Returns `(SELECT … AS a, … AS b)`, to be used in FROM under an alias. */
export function jsonRows(
  dialect: Dialect,
  columns: Readonly<Record<string, JsonColumn>>,
  rows: readonly (readonly (string | number | bigint | null)[])[],
): RawBuilder<unknown> {
  // Integers beyond 2^53 are written digit by digit; JSON text itself has no limit.
  const json = `[${rows.map((row) => `[${row.map(jsonText).join(",")}]`).join(",")}]`;
  const fields = Object.entries(columns).map(([name, type], index) =>
    dialect === "sqlite"
      ? sql`value ->> ${sql.lit(index)} AS ${sql.ref(name)}`
      : sql`CAST(value ->> ${sql.lit(index)} AS ${sql.raw(type)}) AS ${sql.ref(name)}`,
  );
  const source = dialect === "sqlite" ? sql`json_each(${json})` : sql`json_array_elements(CAST(${json} AS json))`;
  return sql`(SELECT ${sql.join(fields)} FROM ${source} AS source)`;
}

const jsonText = (value: string | number | bigint | null): string =>
  typeof value === "bigint" ? value.toString() : JSON.stringify(value);
