/** Searches for a text that many resources contain, all of them far from the first page. */

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { sql } from "kysely";
import { type TestDatabase, testDatabases } from "../../../test/databases.ts";
import { addDrives, addWorkspace, openTestStore } from "../../../test/store.ts";
import { parseListQuery, SORTS } from "../../contract/list-query.ts";

const databases = await testDatabases();
after(() => databases.stop());
const SCOPE = { workspace: "main", kind: "drive", parent: "" };
/** Number of rows with the searched text. They are created first and sort last by name. */
const FIRST = 300;
const ROWS = 1600;
const nameOf = (n: number): string => `${n < FIRST ? "z" : "d"}${String(n).padStart(4, "0")}`;

for (const database of databases.all)
  describe(`search on ${database.name}`, { skip: database.skip }, () => {
    test("finds what lies far from the beginning, in every order, page by page", () => search(database));
  });

async function search(database: TestDatabase): Promise<void> {
  const place = await database.migrated();
  const store = await openTestStore(place);
  await addWorkspace(store);
  await addDrives(
    store,
    Array.from({ length: ROWS }, (_, n) => ({ name: nameOf(n), displayName: n < FIRST ? "amber" : "violet" })),
  );
  if (database.name === "postgres") await sql`ANALYZE resources`.execute(store.database.read);

  const names = Array.from({ length: FIRST }, (_, n) => nameOf(n));
  const expected = {
    "createdAt:desc": names.toReversed(),
    "createdAt:asc": names,
    "name:asc": names,
    "name:desc": names.toReversed(),
  };
  for (const sort of SORTS) {
    const found: string[] = [];
    for (let cursor: string | undefined; cursor !== ""; ) {
      const page = await store.resources.list(SCOPE, parseListQuery({ q: "amber", sort, limit: 40, cursor }));
      found.push(...page.items.map(({ name }) => name));
      cursor = page.nextCursor;
    }
    assert.deepEqual(found, expected[sort], sort);
  }
  await store.close();
  place.remove();
}
