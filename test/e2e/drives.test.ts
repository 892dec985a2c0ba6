import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { testDatabases } from "../databases.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

const databases = await testDatabases();
after(() => databases.stop());

for (const database of databases.aboveStore) {
  describe(`drives and volumes on ${database.name}`, { skip: database.skip }, () => {
    let platform: TestPlatform;
    before(async () => {
      platform = await startTestPlatform(await database.migrated());
    });
    after(() => platform.stop());

    test("a drive is created, read, changed and deleted", async () => {
      const created = await platform.call("POST", "/drives", {
        body: { metadata: { name: "d1", labels: { team: "red" } }, spec: { region: "local", size: 10 } },
      });
      assert.equal(created.status, 200);
      assert.equal(created.body.metadata.workspace, "main");
      assert.equal(created.body.status, "DEPLOYED");
      const again = await platform.call("POST", "/drives", { body: { metadata: { name: "d1" }, spec: {} } });
      assert.equal(again.status, 409);
      assert.equal(again.body.code, 409);
      const changed = await platform.call("PUT", "/drives/d1", {
        body: { metadata: { name: "d1", displayName: "First" }, spec: { region: "local", size: 10 } },
      });
      assert.equal(changed.body.metadata.displayName, "First");
      assert.deepEqual(changed.body.metadata.labels, { team: "red" });
      const stale = await platform.call("PUT", "/drives/d1", {
        body: created.body,
        headers: { "if-match": String(created.headers.get("etag")) },
      });
      assert.equal(stale.status, 412);
      const refused = await platform.call("PUT", "/drives/d1", {
        body: { metadata: { name: "d1" }, spec: { region: "elsewhere" } },
      });
      assert.equal(refused.status, 400);
      assert.match(refused.body.message, /spec\.region/);
      assert.deepEqual((await platform.call("DELETE", "/drives/d1")).body, {
        message: "Drive 'd1' is deleted.",
        name: "d1",
      });
      assert.equal((await platform.call("GET", "/drives/d1")).status, 404);
    });

    test("a drive and a volume have a spec", async () => {
      for (const path of ["/drives", "/volumes"]) {
        const refused = await platform.call("POST", path, { body: { metadata: { name: "bare" } } });
        assert.equal(refused.status, 400);
        assert.match(refused.body.message, /^spec: /);
      }
    });

    test("a deleted volume is returned with its end", async () => {
      await platform.call("POST", "/volumes", { body: { metadata: { name: "v1" }, spec: { size: 5 } } });
      const deleted = await platform.call("DELETE", "/volumes/v1");
      assert.equal(deleted.status, 200);
      assert.ok(Date.parse(deleted.body.terminatedAt) > 0);
    });

    test("lists are pages from 2026-04-28 on and bare arrays before", async () => {
      await platform.call("POST", "/drives", { body: { metadata: { name: "l1" }, spec: {} } });
      await platform.call("POST", "/drives", { body: { metadata: { name: "l2" }, spec: {} } });
      const old = await platform.call("GET", "/drives?sort=nonsense&q=nothing", { version: null });
      assert.equal(old.body.length, 2);
      const one = await platform.call("GET", "/drives?limit=1", { version: null });
      assert.equal(one.body.length, 1);
      assert.equal((await platform.call("GET", "/drives?limit=1000", { version: null })).body.length, 2);
      assert.equal((await platform.call("GET", "/drives?limit=0", { version: null })).status, 400);
      assert.equal((await platform.call("DELETE", "/drives/l2")).status, 200);
      const page = await platform.call("GET", "/drives?limit=1");
      assert.equal(page.body.data.length, 1);
      assert.equal(page.body.meta.hasMore, false);
      assert.equal((await platform.call("GET", "/drives?limit=0")).status, 400);
      assert.equal((await platform.call("GET", "/drives?anchor=end&sort=name:asc")).status, 400);
      const foreign = await platform.call("GET", "/drives?cursor=abc.def");
      assert.equal(foreign.body.error, "invalid_cursor");
    });

    test("parallel retries with one idempotency key have one effect", async () => {
      const body = { metadata: { name: "once" }, spec: {} };
      const headers = { "idempotency-key": "k1" };
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => platform.call("POST", "/drives", { body, headers })),
      );
      assert.deepEqual(
        answers.map((answer) => answer.status),
        Array(8).fill(200),
      );
      assert.equal(new Set(answers.map((answer) => answer.body.metadata.uid)).size, 1);
      const other = await platform.call("POST", "/drives", { body: { ...body, metadata: { name: "twice" } }, headers });
      assert.equal(other.body.error, "idempotency_conflict");
    });
  });
}
