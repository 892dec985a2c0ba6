/** Reseals the values of one column, a bounded number of rows at a time. */
import { type RawBuilder, sql } from "kysely";
import type { Queries } from "../database/database.ts";
import { type Keyring, sealedPrefix } from "./keyring.ts";
import type { SealedColumn, SealedRow } from "./sealed-columns.ts";

/** Rows per batch. Small, because a value can have a megabyte and other writers wait for the transaction. */
export const BATCH_ROWS = 50;

export type After = readonly (string | number)[] | null;

export interface Batch {
  /** Where the next batch begins; null after the last row. */
  after: After;
  resealed: number;
  /** Rows that changed meanwhile; the next pass reads them again. */
  missed: number;
  /** Values that no key opens. They are left as they are. */
  unreadable: number;
  rows: readonly SealedRow[];
}

const VALUE = "sealed_value";

export async function resealBatch(
  queries: Queries,
  keyring: Keyring,
  column: SealedColumn,
  { to, after }: { to: string; after: After },
): Promise<Batch> {
  const rows = await select(queries, column, to, after);
  const batch = { resealed: 0, missed: 0, unreadable: 0 };
  for (const row of rows) {
    const plain = opened(keyring, column, row);
    if (plain === null && column.isCopy) await remove(queries, column, row);
    if (plain === null) batch.unreadable += column.isCopy ? 0 : 1;
    else if (await replace(queries, column, row, keyring.seal(plain, column.context(row)))) batch.resealed += 1;
    else batch.missed += 1;
  }
  const last = rows.length < BATCH_ROWS ? undefined : rows.at(-1);
  return { ...batch, rows, after: last ? column.key.map((name) => last[name] as string | number) : null };
}

function opened(keyring: Keyring, column: SealedColumn, row: SealedRow): string | null {
  try {
    return keyring.open(String(row[VALUE]), column.context(row));
  } catch {
    return null; // damaged, or sealed with a lost key
  }
}

/** Rows after this key whose value is not sealed with the new key. */
async function select(queries: Queries, column: SealedColumn, to: string, after: After): Promise<SealedRow[]> {
  const names = sql.join(column.key.map((name) => sql.ref(name)));
  const beyond = after === null ? sql`` : sql`AND (${names}) > (${sql.join([...after])})`;
  const { rows } = await sql<SealedRow>`SELECT ${names}, ${sql.ref(column.column)} AS ${sql.ref(VALUE)}
    FROM ${sql.table(column.table)} WHERE NOT ${isCurrent(column, to)} ${beyond} ORDER BY ${names} LIMIT ${BATCH_ROWS}`.execute(
    queries,
  );
  return rows;
}

/** Returns false when the value has changed since it was read. */
async function replace(queries: Queries, column: SealedColumn, row: SealedRow, value: string): Promise<boolean> {
  const done = await sql`UPDATE ${sql.table(column.table)} SET ${sql.ref(column.column)} = ${value}
    WHERE ${isThis(column, row)}`.execute(queries);
  return Number(done.numAffectedRows ?? 0) > 0;
}

const remove = (queries: Queries, column: SealedColumn, row: SealedRow) =>
  sql`DELETE FROM ${sql.table(column.table)} WHERE ${isThis(column, row)}`.execute(queries);

const isThis = ({ key, column }: SealedColumn, row: SealedRow): RawBuilder<unknown> =>
  sql.join(
    [...key.map((name) => sql`${sql.ref(name)} = ${row[name]}`), sql`${sql.ref(column)} = ${row[VALUE]}`],
    sql` AND `,
  );

/**
 * Condition: the row has no sealed value, or the key with this fingerprint sealed it. Uses no parameters, for use in
 * DDL.
 */
export function isCurrent({ column, keyPrefix }: SealedColumn, fingerprint: string): RawBuilder<unknown> {
  const value = sql.ref(column);
  const current = sql`${value} IS NULL OR ${value} = '' OR ${value} LIKE ${sql.lit(`${sealedPrefix(fingerprint)}%`)}`;
  return keyPrefix === undefined
    ? sql`(${current})`
    : sql`(${sql.ref("key")} NOT LIKE ${sql.lit(`${keyPrefix}%`)} OR ${current})`;
}
