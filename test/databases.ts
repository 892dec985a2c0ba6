/** The databases that store-level suites run on: SQLite always, PostgreSQL where the machine can offer one. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LONG } from "./long.ts";
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

export interface TestDatabases {
  all: TestDatabase[];
  /**
   * For suites about what happens above the store: PostgreSQL where it can be had, because suites that choose no
   * database run on SQLite; all of them in `npm run test:long`.
   */
  aboveStore: TestDatabase[];
  stop(): Promise<void>;
}

export async function testDatabases(): Promise<TestDatabases> {
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
  const sqlite: TestDatabase = {
    name: "sqlite",
    skip: false,
    fresh: () => fresh(false),
    migrated: () => fresh(false),
  };
  const postgres: TestDatabase = {
    name: "postgres",
    skip,
    fresh: () => fresh(true),
    migrated: () => fresh(true, process.env[TEMPLATE_VARIABLE]),
  };
  const all = [sqlite, postgres];
  return {
    all,
    aboveStore: LONG ? all : [skip === false ? postgres : sqlite],
    stop: async () => {
      for (const { remove } of places) remove();
      if ("stop" in server) await server.stop();
    },
  };
}
