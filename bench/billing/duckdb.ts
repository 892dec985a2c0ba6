/** The same raw events in DuckDB, for comparison: it is not a dependency, a folder that has @duckdb/node-api is named. */

import { once } from "node:events";
import { createWriteStream, existsSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { sql } from "kysely";
import type { Store } from "../../src/store/store.ts";

interface Connection {
  run(text: string): Promise<unknown>;
  runAndReadAll(text: string): Promise<unknown>;
}

export interface RawAsker {
  ask(text: string): Promise<unknown>;
}

/** Events read from the ledger at a time. */
const PAGE = 200_000;

export async function openDuckDb(moduleDir: string, dir: string, store: Store): Promise<RawAsker> {
  const require = createRequire(join(moduleDir, "package.json"));
  const { DuckDBInstance } = require("@duckdb/node-api") as {
    DuckDBInstance: { create(path: string): Promise<{ connect(): Promise<Connection> }> };
  };
  const file = join(dir, "events.duckdb");
  const isNew = !existsSync(file);
  const connection = await (await DuckDBInstance.create(file)).connect();
  if (isNew) await copyEvents(store, connection, dir);
  return { ask: (text) => connection.runAndReadAll(text.replaceAll(" / ", " // ")) };
}

async function copyEvents(store: Store, connection: Connection, dir: string): Promise<void> {
  const { read } = store.database;
  const tables = {
    usage_series:
      "SELECT id, account, workspace, resource_type, resource_name, dimension FROM usage_series WHERE id > {after} AND named = 1 ORDER BY id",
    usage_events:
      "SELECT start_ms, series_id, end_ms, quantity FROM usage_events WHERE (start_ms, series_id) > ({after}) ORDER BY start_ms, series_id",
  };
  for (const [table, select] of Object.entries(tables)) {
    const csv = join(dir, `${table}.csv`);
    const out = createWriteStream(csv);
    for (let after = table === "usage_series" ? "-1" : "-1, -1"; ; ) {
      const text = `${select.replace("{after}", after)} LIMIT ${PAGE}`;
      const { rows } = await sql<Record<string, string | number>>`${sql.raw(text)}`.execute(read);
      const last = rows.at(-1);
      if (!last) break;
      if (after.startsWith("-1")) out.write(`${Object.keys(last).join(",")}\n`);
      if (!out.write(`${rows.map((row) => Object.values(row).join(",")).join("\n")}\n`)) await once(out, "drain");
      after = table === "usage_series" ? String(last.id) : `${last.start_ms}, ${last.series_id}`;
    }
    out.end();
    await once(out, "finish");
    await connection.run(`CREATE TABLE ${table} AS SELECT * FROM read_csv('${csv}')`);
    rmSync(csv);
  }
}
