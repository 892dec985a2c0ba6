import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { sql } from "kysely";
import { type TestDatabase, testDatabases } from "../../../../test/databases.ts";
import type { Database } from "../database.ts";
import { openPostgres } from "../postgres.ts";
import { openSqlite } from "../sqlite.ts";
import { MIGRATIONS, migrate } from "./index.ts";

const databases = await testDatabases();
after(() => databases.stop());
for (const database of databases.all)
  describe(`migrations on ${database.name}`, { skip: database.skip }, () => suite(database));

function suite(kind: TestDatabase): void {
  const onFresh = (name: string, work: (open: () => Promise<Database>) => Promise<void>) =>
    test(name, async () => {
      const place = await kind.fresh();
      const opened: Database[] = [];
      try {
        await work(async () => {
          const database = place.databaseUrl
            ? await openPostgres(place.databaseUrl, assert.ifError)
            : openSqlite(`${place.dataDir}/m.sqlite`);
          opened.push(database);
          return database;
        });
      } finally {
        for (const database of opened) await database.close();
        place.remove();
      }
    });

  onFresh("several servers may start at once", async (open) => {
    const first = await open();
    const others = kind.name === "postgres" ? await Promise.all([open(), open()]) : [];
    await Promise.all([first, ...others].map((database) => migrate(database, 1)));
    const applied = await sql<{ n: number }>`SELECT count(*) AS n FROM migrations`.execute(first.read);
    assert.equal(Number(applied.rows[0]?.n), MIGRATIONS.length);
  });

  onFresh("a second start changes nothing", async (open) => {
    const database = await open();
    await migrate(database, 1);
    await migrate(database, 2);
    const times = await sql<{ at: number }>`SELECT DISTINCT applied_at AS at FROM migrations`.execute(database.read);
    assert.deepEqual(
      times.rows.map((row) => Number(row.at)),
      [1],
    );
  });

  onFresh("a database from the future is refused, and says so", async (open) => {
    const database = await open();
    const future = { id: 999, name: "tomorrow", both: ["CREATE TABLE tomorrow (x INTEGER)"] };
    await migrate(database, 1, [...MIGRATIONS, future]);
    await assert.rejects(migrate(database, 2), /newer Berth.*'tomorrow'/);
  });

  onFresh("an edited migration is refused", async (open) => {
    const database = await open();
    const [first, ...rest] = MIGRATIONS;
    assert.ok(first);
    await migrate(database, 1);
    await assert.rejects(migrate(database, 2, [{ ...first, both: [...first.both, "SELECT 1"] }, ...rest]), /differs/);
  });

  onFresh("a migration that fails leaves nothing behind", async (open) => {
    const database = await open();
    await migrate(database, 1);
    const broken = { id: 999, name: "broken", both: ["CREATE TABLE half (x INTEGER)", "CREATE NONSENSE"] };
    await assert.rejects(migrate(database, 2, [...MIGRATIONS, broken]));
    await assert.rejects(sql`SELECT * FROM half`.execute(database.read));
    await migrate(database, 3);
  });
}

test("migrations are numbered in order", () => {
  const ids = MIGRATIONS.map((migration) => migration.id);
  assert.deepEqual(
    ids,
    ids.toSorted((a, b) => a - b),
  );
});
