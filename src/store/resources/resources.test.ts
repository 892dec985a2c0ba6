import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type TestDatabase, type TestPlace, testDatabases } from "../../../test/databases.ts";
import { addWorkspace, draftOf, openTestStore } from "../../../test/store.ts";
import { parseListQuery, SORTS, type Sort } from "../../contract/list-query.ts";
import { firstUidAt } from "../../lib/ids.ts";
import { toIso } from "../../lib/time/clock.ts";
import type { Store } from "../store.ts";

const databases = await testDatabases();
after(() => databases.stop());

for (const database of databases.all)
  describe(`resources on ${database.name}`, { skip: database.skip }, () => suite(database));

const FILTER_TIME = Date.UTC(2040, 0, 1);

function suite(database: TestDatabase): void {
  let store: Store;
  let place: TestPlace;
  before(async () => {
    place = await database.migrated();
    store = await openTestStore(place);
    await addWorkspace(store);
  });
  after(async () => {
    await store.close();
    place.remove();
  });

  const scope = (kind: string) => ({ workspace: "main", kind, parent: "" });

  test("a name is taken once, however many ask at the same time", async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, () => store.resources.create(draftOf("race", "one"))),
    );
    assert.equal(outcomes.filter(({ outcome }) => outcome === "created").length, 1);
    assert.equal(new Set(outcomes.map(({ resource }) => resource.uid)).size, 1);
    assert.equal((await store.resources.list(scope("race"), parseListQuery({}))).total, 1);
  });

  test("pages walk all four orders", async () => {
    for (let n = 0; n < 25; n += 1) await store.resources.create(draftOf("page", `p${String(n).padStart(2, "0")}`));
    for (const sort of ["createdAt:desc", "createdAt:asc", "name:asc", "name:desc"] as const) {
      const names: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await store.resources.list(
          scope("page"),
          parseListQuery({ sort, limit: 10, ...(cursor ? { cursor } : {}) }),
        );
        assert.equal(page.total, 25);
        names.push(...page.items.map((item) => item.name));
        cursor = page.nextCursor || undefined;
      } while (cursor);
      const expected = Array.from({ length: 25 }, (_, n) => `p${String(n).padStart(2, "0")}`);
      assert.deepEqual(names, sort.endsWith("desc") ? expected.reverse() : expected);
    }
  });

  test("lists are filtered by label and status and begin at a time or a name, in every order, page by page", async () => {
    const made: { uid: string; name: string; createdAt: number }[] = [];
    for (let n = 0; n < 24; n += 1) {
      const labels = { tier: n % 3 === 0 ? "gold" : "golden", ...(n % 2 === 0 ? { even: "" } : {}) };
      const status = n % 4 === 0 ? "FAILED" : n % 4 === 1 ? "DEPLOYING" : "DEPLOYED";
      const uid = firstUidAt(FILTER_TIME + n * 1000).replace("-0000-", "-8000-");
      const draft = draftOf("filter", `f${String((n * 7) % 24).padStart(2, "0")}`, {
        uid,
        metadata: { labels },
        status,
      });
      made.push({ ...(await store.resources.create(draft)).resource });
    }
    type Asked = Parameters<typeof parseListQuery>[0];
    const walk = async (asked: Asked): Promise<string[]> => {
      const names: string[] = [];
      for (let cursor = ""; ; ) {
        const page = await store.resources.list(
          scope("filter"),
          parseListQuery({ limit: 3, ...asked, ...(cursor ? { cursor } : {}) }),
        );
        names.push(...page.items.map(({ name }) => name));
        cursor = page.nextCursor;
        if (cursor === "") return names;
      }
    };
    const expected = (sort: Sort, keep: (n: number) => boolean): string[] => {
      const names = made.filter((_, n) => keep(n)).map(({ name }) => name);
      if (sort.startsWith("name")) names.sort();
      return sort.endsWith("desc") ? names.reverse() : names;
    };
    const at = toIso(FILTER_TIME + 10_000);
    for (const sort of SORTS) {
      assert.deepEqual(
        await walk({ sort, label: "tier=gold" }),
        expected(sort, (n) => n % 3 === 0),
        `${sort} label`,
      );
      assert.deepEqual(
        await walk({ sort, label: "even,tier=gold" }),
        expected(sort, (n) => n % 6 === 0),
        `${sort} labels`,
      );
      assert.deepEqual(
        await walk({ sort, label: "even", q: "golden" }),
        expected(sort, (n) => n % 2 === 0 && n % 3 !== 0),
        `${sort} label and text`,
      );
      assert.deepEqual(
        await walk({ sort, state: "failed,deploying" }),
        expected(sort, (n) => n % 4 < 2),
        `${sort} status`,
      );
      assert.deepEqual(
        await walk({ sort, status: "FAILED", label: "tier=gold" }),
        expected(sort, (n) => n % 12 === 0),
        `${sort} both`,
      );
      const later = (n: number): boolean => (sort.endsWith("asc") ? n >= 10 : n <= 10);
      const byName = (n: number): boolean => (sort.endsWith("asc") ? (n * 7) % 24 >= 10 : (n * 7) % 24 <= 10);
      const [from, keep] = sort.startsWith("name") ? ["f10", byName] : [at, later];
      assert.deepEqual(await walk({ sort, from }), expected(sort, keep), `${sort} from`);
      assert.deepEqual(await walk({ sort, from, q: "gold" }), expected(sort, keep), `${sort} from, with a search`);
      assert.deepEqual(
        await walk({ sort, from, status: "FAILED" }),
        expected(sort, (n) => keep(n) && n % 4 === 0),
        `${sort} from, with a status`,
      );
    }
    assert.throws(() => parseListQuery({ label: "a=b" }), /at least 2 characters/);
    assert.throws(() => parseListQuery({ from: "f10" }), /must be a time/);
  });

  test("search finds substrings of two characters and more", async () => {
    await store.resources.create(
      draftOf("find", "alpha-one", { metadata: { displayName: "Größer Als", labels: { team: "Blue-Sky" } } }),
    );
    await store.resources.create(draftOf("find", "beta-two", { metadata: { labels: { team: "red" } } }));
    const found = async (q: string, sort?: "name:asc") =>
      (await store.resources.list(scope("find"), parseListQuery({ q, ...(sort ? { sort } : {}) }))).items.map(
        (item) => item.name,
      );
    assert.deepEqual(await found("al"), ["alpha-one"]);
    assert.deepEqual(await found("ßer a"), ["alpha-one"]);
    assert.deepEqual(await found("LUE-sk"), ["alpha-one"]);
    assert.deepEqual(await found("ta", "name:asc"), ["beta-two"]);
    assert.deepEqual(await found("team"), ["beta-two", "alpha-one"]);
    assert.deepEqual(await found("zz"), []);
    assert.deepEqual(await found("x"), ["beta-two", "alpha-one"]);
  });

  test("those who share a commit are counted each in its place, and only if they came to be", async () => {
    const names = ["one", "two", "two", "three"];
    await Promise.all([
      ...names.map((name) => store.resources.create(draftOf("counted", name))),
      store.resources.create(draftOf("beside", "one")),
      store.resources.create(draftOf("counted", "inner", { parent: "none" })).catch(() => {}),
    ]);
    const totalOf = async (kind: string) => (await store.resources.list(scope(kind), parseListQuery({}))).total;
    assert.deepEqual([await totalOf("counted"), await totalOf("beside")], [3, 1]);
  });

  test("nothing is made in a workspace that is not there, whoever else writes at the moment", async () => {
    const [refused, made] = await Promise.allSettled([
      store.resources.create(draftOf("orphan", "x", { workspace: "nowhere" })),
      store.resources.create(draftOf("orphan", "x")),
    ]);
    assert.ok(refused.status === "rejected" && refused.reason.code === "not_found", String(refused.status));
    assert.ok(made.status === "fulfilled" && made.value.outcome === "created");
    assert.equal(await store.resources.getAcrossWorkspaces(made.value.resource.uid).then((one) => one?.name), "x");
  });

  test("secrets come back only through the key", async () => {
    const { resource } = await store.resources.create(draftOf("secret", "s", { secrets: { "/spec/key": "hunter2" } }));
    assert.ok(!JSON.stringify(resource).includes("hunter2"));
    assert.deepEqual(store.resources.secretsOf(resource), { "/spec/key": "hunter2" });
  });

  test("a retired record frees its name", async () => {
    const first = await store.resources.create(draftOf("retire", "x"));
    await store.resources.update("main", first.resource.uid, () => ({ status: "TERMINATED", retire: true }));
    const second = await store.resources.create(draftOf("retire", "x"));
    assert.equal(second.outcome, "created");
    const got = await store.resources.get(scope("retire"), "x");
    assert.equal(got?.uid, second.resource.uid);
  });

  test("deleting takes children along", async () => {
    const parent = await store.resources.create(draftOf("tree", "p"));
    const child = await store.resources.create(draftOf("leaf", "c", { parent: parent.resource.uid }));
    await store.resources.delete("main", parent.resource.uid);
    assert.equal(await store.resources.getByUid("main", child.resource.uid), null);
  });

  test("waitFor sees a change made by somebody else", async () => {
    const { resource } = await store.resources.create(draftOf("wait", "w", { status: "DEPLOYING" }));
    const waiting = store.resources.waitFor("main", resource.uid, (now) => now?.status === "DEPLOYED", {
      signal: AbortSignal.timeout(60_000),
    });
    await store.resources.update("main", resource.uid, () => ({ status: "DEPLOYED" }));
    assert.equal((await waiting)?.status, "DEPLOYED");
  });

  test("a writer that fails takes nothing of the others along, whatever it had written", async () => {
    const before = new Error("before it wrote");
    const behind = new Error("after it wrote");
    const fail = (name: string, error: Error) =>
      store.write(async (tx) => {
        if (error === behind) await store.resources.insert(tx, draftOf("batch", name));
        throw error;
      });
    const told = await Promise.allSettled([
      store.resources.create(draftOf("batch", "one")),
      fail("no-1", before),
      store.resources.create(draftOf("batch", "two")),
      fail("no-2", behind),
      store.resources.create(draftOf("batch", "three")),
    ]);
    assert.deepEqual(
      told.map((one) => (one.status === "fulfilled" ? "kept" : one.reason)),
      ["kept", before, "kept", behind, "kept"],
    );
    const { items, total } = await store.resources.list(scope("batch"), parseListQuery({ sort: "name:asc" }));
    assert.deepEqual([...items.map(({ name }) => name), total], ["one", "three", "two", 3]);
    for (const name of ["no-1", "no-2"]) assert.equal(await store.resources.get(scope("batch"), name), null);
  });

  test("what is read is what was committed last, and nobody else's to change", async () => {
    const { resource } = await store.resources.create(draftOf("fresh", "f", { spec: { deep: { n: 1 } } }));
    const read = async () => (await store.resources.get(scope("fresh"), "f"))?.spec;
    const mine = (await read()) as { deep: { n: number } };
    mine.deep.n = 9;
    assert.deepEqual(await read(), { deep: { n: 1 } });
    const undone = store.write(async (tx) => {
      await store.resources.modify(tx, "main", resource.uid, () => ({ spec: { n: 2 } }));
      throw new Error("undone");
    });
    await assert.rejects(undone, /undone/);
    assert.deepEqual(await read(), { deep: { n: 1 } });
    await store.resources.update("main", resource.uid, () => ({ spec: { n: 3 } }));
    assert.deepEqual(await read(), { n: 3 });
    assert.deepEqual((await store.resources.getByUid("main", resource.uid))?.spec, { n: 3 });
    await store.resources.delete("main", resource.uid);
    assert.equal(await read(), undefined);
    assert.equal(await store.resources.getByUid("main", resource.uid), null);
  });

  test("five revisions are kept", async () => {
    const { resource } = await store.resources.create(draftOf("rev", "r", { revision: true }));
    for (let n = 0; n < 7; n += 1)
      await store.resources.update("main", resource.uid, () => ({ spec: { n }, intent: true, revision: true }));
    const revisions = await store.resources.revisionsOf("main", resource.uid);
    assert.equal(revisions.length, 5);
  });
}
