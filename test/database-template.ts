/**
 * A PostgreSQL database in which all migrations have run, made once by the runner. Suites that are about something else
 * begin with a copy of it, which costs a third of running the migrations (`migrated` of `databases.ts`).
 */
import pg from "pg";
import { migrate } from "../src/store/database/migrations/index.ts";
import { openDatabase } from "../src/store/store.ts";
import { createDatabase } from "./postgres.ts";

export async function makeTemplate(serverUrl: string): Promise<{ name: string; remove(): Promise<void> }> {
  const databaseUrl = await createDatabase(serverUrl);
  const name = new URL(databaseUrl).pathname.slice(1);
  const failed = (error: unknown): never => {
    throw error;
  };
  const database = await openDatabase({ databaseUrl, dataDir: "", onError: failed });
  try {
    await migrate(database, Date.now());
  } finally {
    await database.close();
  }
  // A database that somebody is connected to cannot be copied.
  await atServer(serverUrl, `ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
  return { name, remove: () => atServer(serverUrl, `DROP DATABASE ${name}`) };
}

async function atServer(serverUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
