import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { sql } from "kysely";
import { closeAtEnd } from "../../../test/closing.ts";
import { type TestPlace, testDatabases } from "../../../test/databases.ts";
import type { Database } from "../database/database.ts";
import { MIGRATIONS, migrate, ownTables } from "../database/migrations/index.ts";
import { openDatabase, SQLITE_FILE } from "../store.ts";
import { writeBackup } from "./backup.ts";
import { decodeRow, encodeRow, openBackup } from "./format.ts";
import { portableTables } from "./portable-tables.ts";
import { restoreBackup } from "./restore.ts";
import { openPostgresSnapshot, openSqliteSnapshot } from "./snapshot.ts";

const databases = await testDatabases();
const folder = mkdtempSync(join(tmpdir(), "berth-backup-"));
after(async () => {
  await databases.stop();
  rmSync(folder, { recursive: true });
});

type Place = TestPlace;
async function open(place: Place): Promise<Database> {
  const database = await openDatabase({ ...place, onError: assert.ifError });
  const closed = closeAtEnd(() => database.close());
  return {
    ...database,
    close: () => {
      closed();
      return database.close();
    },
  };
}
const NOW = 1_800_000_000_000;

test("values keep what they are", () => {
  const row = ["text", "", null, 0, 1.5, 2n ** 62n, -(2n ** 60n), 7n, new Uint8Array([0, 255])];
  assert.deepEqual(decodeRow(JSON.parse(encodeRow(row)) as unknown[]), [
    "text",
    "",
    null,
    0,
    1.5,
    2n ** 62n,
    -(2n ** 60n),
    7,
    Buffer.from([0, 255]),
  ]);
});

test("both databases have the same tables and columns, but for what they derive", {
  skip: databases.all[1]?.skip,
}, async () => {
  const shapes = [];
  for (const database of databases.all) {
    const place = await database.fresh();
    const opened = await open(place);
    await migrate(opened, NOW);
    await opened.close();
    const snapshot = place.databaseUrl
      ? await openPostgresSnapshot(place.databaseUrl)
      : openSqliteSnapshot(join(place.dataDir, SQLITE_FILE));
    shapes.push(portableTables(snapshot.tables, ownTables(MIGRATIONS)));
    await snapshot.close();
    place.remove();
  }
  // A table that fails here cannot be restored into the other database: see portable-tables.ts.
  assert.deepEqual(shapes[0], shapes[1]);
  assert.ok((shapes[0]?.length ?? 0) > 10);
});

for (const database of databases.all) {
  describe(`backups of ${database.name}`, { skip: database.skip }, () => {
    test("of an older version are restored and brought to the present; numbers go on", async () => {
      const [from, to] = [await database.fresh(), await database.fresh()];
      const old = await open(from);
      await migrate(old, NOW, MIGRATIONS.slice(0, 1));
      await old.write(({ queries }) =>
        sql`INSERT INTO accounts (id, name, created_at) VALUES ('a', 'Old', ${NOW})`.execute(queries),
      );
      await old.close();
      const file = join(folder, `${database.name}-old.gz`);
      await writeBackup({ ...from, file, keyOf: () => ({ fingerprint: "f" }), version: "0", createdAt: "" });

      const target = await open(to);
      const reader = await openBackup(file);
      await restoreBackup(target, reader, { force: false, nowMs: NOW });
      const { rows } = await sql<{ name: string }>`SELECT name FROM accounts`.execute(target.read);
      assert.deepEqual(
        rows.map(({ name }) => name),
        ["Old"],
      );
      await migrate(target, NOW);
      await target.write(({ queries }) =>
        sql`INSERT INTO usage_accounts (id, account_id) VALUES (41, 'x')`.execute(queries),
      );
      await target.close();

      const again = join(folder, `${database.name}-numbers.gz`);
      await writeBackup({ ...to, file: again, keyOf: () => ({ fingerprint: "f" }), version: "0", createdAt: "" });
      const third = await database.fresh();
      const last = await open(third);
      await restoreBackup(last, await openBackup(again), { force: false, nowMs: NOW });
      await last.write(({ queries }) => sql`INSERT INTO usage_accounts (account_id) VALUES ('y')`.execute(queries));
      const ids = await sql<{ id: number }>`SELECT id FROM usage_accounts ORDER BY id`.execute(last.read);
      assert.deepEqual(
        ids.rows.map(({ id }) => id),
        [41, 42],
      );
      await last.close();
      for (const place of [from, to, third]) place.remove();
    });

    test("see one moment, whatever is written meanwhile", async (t) => {
      const place = await database.fresh();
      const opened = await open(place);
      await migrate(opened, NOW);
      const add = (n: number) =>
        opened.write(async ({ queries }) => {
          // Two rows in two tables, written in one transaction.
          await sql`INSERT INTO accounts (id, name, created_at) VALUES (${`a${n}`}, 'x', 1)`.execute(queries);
          await sql`INSERT INTO usage_accounts (account_id) VALUES (${`a${n}`})`.execute(queries);
        });
      for (let n = 0; n < 50; n += 1) await add(n);
      let stop = false;
      t.after(() => {
        stop = true;
      });
      const writing = (async () => {
        let n = 50;
        for (; !stop; n += 1) await add(n);
        return n;
      })();
      const file = join(folder, `${database.name}-moment.gz`);
      const rows = await writeBackup({
        ...place,
        file,
        keyOf: () => ({ fingerprint: "f" }),
        version: "0",
        createdAt: "",
      });
      stop = true;
      const written = await writing;
      assert.equal(rows.accounts, rows.usage_accounts);
      assert.ok((rows.accounts ?? 0) >= 50 && (rows.accounts ?? 0) <= written);
      await opened.close();
      place.remove();
    });
  });
}
