import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { sql } from "kysely";
import { testDatabases } from "../../../test/databases.ts";
import { addDrives, addWorkspace, openTestStore } from "../../../test/store.ts";
import { parseListQuery } from "../../contract/list-query.ts";
import { systemClock } from "../../lib/time/clock.ts";
import { createGramFrequencies } from "./gram-frequencies.ts";
import { gramsOfQuery } from "./search-grams.ts";

const databases = await testDatabases();
after(() => databases.stop());
const postgres = databases.all.find(({ name }) => name === "postgres");
const SCOPE = { workspace: "main", kind: "drive", parent: "" };
const ROWS = 3000;

describe("frequencies of grams", { skip: postgres ? postgres.skip : "PostgreSQL is not among the databases" }, () => {
  test("a common word is known to be common, and found either way", async () => {
    assert.ok(postgres);
    const place = await postgres.fresh();
    const store = await openTestStore(place);
    await addWorkspace(store);
    await addDrives(
      store,
      Array.from({ length: ROWS }, (_, n) => ({ name: `d${n}`, displayName: n === 7 ? "zebra" : "violet" })),
    );
    const found = async (q: string) => {
      const { items } = await store.resources.list(SCOPE, parseListQuery({ q, limit: 5 }));
      return items.map(({ name }) => name);
    };
    const newest = Array.from({ length: 5 }, (_, n) => `d${ROWS - 1 - n}`);
    assert.deepEqual(await found("violet"), newest, "before the database knows anything");
    await sql`ANALYZE resources`.execute(store.database.read);
    const frequencies = createGramFrequencies(store.database, systemClock);
    assert.ok((await frequencies.matches(gramsOfQuery("violet", SCOPE))) > ROWS / 2);
    assert.equal(await frequencies.matches(gramsOfQuery("nowhere", SCOPE)), 0);
    assert.equal(await frequencies.matches(gramsOfQuery("violet", { ...SCOPE, workspace: "other" })), 0);
    // A fresh store reads the statistics anew.
    const again = await openTestStore(place);
    const { items } = await again.resources.list(SCOPE, parseListQuery({ q: "violet", limit: 5 }));
    assert.deepEqual(
      items.map(({ name }) => name),
      newest,
    );
    assert.deepEqual(await found("zebra"), ["d7"]);
    await again.close();
    await store.close();
    place.remove();
  });
});
