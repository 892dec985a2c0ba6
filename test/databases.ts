/** The databases that store-level suites run on: SQLite always, PostgreSQL where the machine can offer one. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDatabase, startPostgres, TEMPLATE_VARIABLE } from "./postgres.ts";

export interface TestPlace {
  dataDir: string;
  databaseUrl: string | null;
  remove(): void;
}

export interface TestDatabase {
  name: "sqlite" | "postgres";
  /** Why it cannot be had here, or false. */
  skip: string | false;
  /** A new, empty place to keep things. */
  fresh(): Promise<TestPlace>;
  /** The same, but a PostgreSQL may have its tables already: for suites that are not about an empty database. */
  migrated(): Promise<TestPlace>;
}

export async function testDatabases(): Promise<{ all: TestDatabase[]; stop(): Promise<void> }> {
  const server = await startPostgres();
  const skip = "reason" in server ? server.reason : false;
  const places: TestPlace[] = [];
  const fresh = async (withUrl: boolean, template?: string): Promise<TestPlace> => {
    const dataDir = mkdtempSync(join(tmpdir(), "berth-test-"));
    const databaseUrl = withUrl && "url" in server ? await createDatabase(server.url, template) : null;
    const remove = () => rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
    places.push({ dataDir, databaseUrl, remove });
    return { dataDir, databaseUrl, remove };
  };
  return {
    all: [
      { name: "sqlite", skip: false, fresh: () => fresh(false), migrated: () => fresh(false) },
      {
        name: "postgres",
        skip,
        fresh: () => fresh(true),
        migrated: () => fresh(true, process.env[TEMPLATE_VARIABLE]),
      },
    ],
    stop: async () => {
      for (const { remove } of places) remove();
      if ("stop" in server) await server.stop();
    },
  };
}
