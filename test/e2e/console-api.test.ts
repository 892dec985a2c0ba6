/** What a console asks for beside the resources: the overview, changes as they happen, search over all kinds. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Store } from "../../src/store/store.ts";
import { testDatabases } from "../databases.ts";
import { makeAccount, makeUser } from "../identities.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { draftOf } from "../store.ts";

const databases = await testDatabases();
after(() => databases.stop());

for (const database of databases.all) {
  describe(`console API on ${database.name}`, { skip: database.skip }, () => {
    let platform: TestPlatform;
    let store: Store;
    let accountId: string;
    let aheadMs = 0;
    const call: TestPlatform["call"] = (...args) => platform.call(...args);
    const drive = (name: string, workspace = "main", labels = {}) =>
      call("POST", "/drives", { workspace, body: { metadata: { name, labels }, spec: { size: 1 } } });

    before(async () => {
      platform = await startTestPlatform({ ...(await database.fresh()), clock: { now: () => Date.now() + aheadMs } });
      store = platform.app.store;
      accountId = (await store.people.listAccountsAcrossUsers())[0]?.id ?? "";
      await makeAccount(store, "elsewhere");
    });
    after(() => platform.stop());

    test("the overview counts by kind and status and tells why something failed", async () => {
      const uids: string[] = [];
      for (const name of ["first", "second", "third"]) {
        uids.push((await store.resources.create(draftOf("model", name))).resource.uid);
      }
      const fail = (uid: string, message: string) => {
        aheadMs += 1000;
        return store.resources.update("main", uid, () => ({ status: "FAILED", event: { type: "failed", message } }));
      };
      await fail(uids[1] ?? "", "The key is wrong. It said: secret output");
      await fail(uids[0] ?? "", "No room.");
      await drive("kept");
      await store.resources.delete("main", uids[2] ?? "");

      const { body } = await call("GET", "/overview");
      const kindOf = (kind: string) => body.kinds.find((one: { kind: string }) => one.kind === kind);
      assert.deepEqual(kindOf("model").statuses, { FAILED: 2 });
      assert.equal(kindOf("drive").total, 1);
      assert.equal(kindOf("sandbox").total, 0);
      assert.deepEqual(
        body.failures.map(({ name, reason }: { name: string; reason: string }) => [name, reason]),
        [
          ["first", "No room."],
          ["second", "The key is wrong. It said: secret output"],
        ],
      );
      assert.equal(typeof body.cost.today, "number");

      const narrow = await makeUser(store, accountId, "member", { main: "member" }, ["workspaces:get", "models:list"]);
      const seen = (await call("GET", "/overview", { key: narrow.key, workspace: "main" })).body;
      assert.deepEqual(
        seen.kinds.map(({ kind }: { kind: string }) => kind),
        ["model"],
      );
      assert.equal(seen.cost, undefined);
      assert.equal(seen.failures[1].reason, "The key is wrong.");
      for (const uid of uids.slice(0, 2)) await store.resources.delete("main", uid);
      assert.deepEqual((await call("GET", "/overview")).body.failures, []);
    });
  });
}
