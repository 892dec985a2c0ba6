/** The other side of sandboxd/hub/sql.ts: runs one statement and prints its rows. */
import type { Value } from "bun:sqlite";
import { openSql } from "../bun.ts";
import { SQL_REQUEST_VARIABLE, type SqlReply, type SqlRequest } from "./sql.ts";

const ROWS_MAX = 1000;
/** Longest reply; a model cannot use more. */
const REPLY_CHARS_MAX = 1024 * 1024;
/** How long SQLite waits while another statement writes to the same file. */
const BUSY_MS = 10_000;

export async function runSqlChild(): Promise<void> {
  const request = JSON.parse(process.env[SQL_REQUEST_VARIABLE] ?? "{}") as SqlRequest;
  const { database } = request;
  let reply: SqlReply;
  try {
    reply = "file" in database ? await inFile(database.file, request) : await atAddress(database.url, request);
  } catch (error) {
    reply = { error: error instanceof Error ? error.message : String(error) };
  }
  process.stdout.write(JSON.stringify(reply));
}

async function inFile(file: string, { sql, params, readOnly }: SqlRequest): Promise<SqlReply> {
  const { Database } = await import("bun:sqlite");
  const database = new Database(file, { readwrite: true, create: true });
  try {
    database.run(`PRAGMA busy_timeout = ${BUSY_MS}`);
    database.run("PRAGMA journal_mode = WAL");
    if (readOnly) database.run("PRAGMA query_only = 1");
    const statement = database.prepare(sql);
    const kept = keep(statement.iterate(...(params as Value[])));
    const [{ n } = { n: 0 }] = database.prepare("SELECT changes() AS n").iterate() as Iterable<{ n: number }>;
    return { columns: statement.columnNames, ...kept, ...(readOnly ? {} : { changes: n }) };
  } finally {
    database.close();
  }
}

async function atAddress(url: string, { sql, params, readOnly }: SqlRequest): Promise<SqlReply> {
  const database = openSql(url);
  try {
    if (readOnly) await database.unsafe("SET default_transaction_read_only = on");
    const rows = await database.unsafe(sql, params);
    const kept = keep(rows);
    const columns = Object.keys((kept.rows[0] as object | undefined) ?? {});
    return { columns, ...kept, ...(readOnly ? {} : { changes: rows.count ?? rows.length }) };
  } finally {
    await database.close();
  }
}

function keep(source: Iterable<unknown>): { rows: unknown[]; truncated: boolean } {
  const rows: unknown[] = [];
  let chars = 0;
  for (const row of source) {
    const plain: unknown = JSON.parse(JSON.stringify(row, asJson));
    chars += JSON.stringify(plain).length;
    if (rows.length === ROWS_MAX || chars > REPLY_CHARS_MAX) return { rows, truncated: true };
    rows.push(plain);
  }
  return { rows, truncated: false };
}

const asJson = (_key: string, value: unknown): unknown => {
  if (typeof value === "bigint") return value.toString();
  return value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value;
};
