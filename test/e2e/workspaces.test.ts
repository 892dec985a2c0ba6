import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { settleWorkspace } from "../../src/auth/bootstrap.ts";
import { resumeWorkspaceRemovals } from "../../src/kinds/workspace/removal.ts";
import type { Store } from "../../src/store/store.ts";
import { testDatabases } from "../databases.ts";
import { makeAccount, makeServiceAccount, makeUser } from "../identities.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

const databases = await testDatabases();
after(() => databases.stop());

for (const database of databases.aboveStore) {
  describe(`workspaces on ${database.name}`, { skip: database.skip }, () => {
    let platform: TestPlatform;
    let store: Store;
    let accountId: string;
    const call: TestPlatform["call"] = (...args) => platform.call(...args);
    const create = (name: string, rest: object = {}, key?: string) =>
      call("POST", "/workspaces", { body: { name, ...rest }, ...(key ? { key } : {}) });
    const addDrive = (workspace: string, name: string) =>
      call("POST", "/drives", { body: { metadata: { name }, spec: {} }, workspace });

    before(async () => {
      platform = await startTestPlatform(await database.migrated());
      store = platform.app.store;
      accountId = (await store.people.listAccountsAcrossUsers())[0]?.id ?? "";
    });
    after(() => platform.stop());

    test("accounts are the caller's own, with the role in each", async () => {
      const { body } = await call("GET", "/accounts");
      assert.deepEqual(
        body.map((account: { id: string; role: string }) => [account.id, account.role]),
        [[accountId, "admin"]],
      );
      const other = await makeAccount(store, "accounts-other");
      const stranger = await makeUser(store, other.id, "member");
      const seen = await call("GET", "/accounts", { key: stranger.key });
      assert.deepEqual(
        seen.body.map((account: { id: string; role: string }) => [account.id, account.role]),
        [[other.id, "member"]],
      );
    });

    test("a workspace is created ready, read, changed and listed", async () => {
      const created = await create("team-a", {
        displayName: "Team A",
        labels: { tier: "gold" },
        groupMappings: [{ groupName: "devs", role: "member" }],
        status: "error",
      });
      assert.equal(created.status, 200, JSON.stringify(created.body));
      assert.equal(created.body.status, "ready");
      assert.equal(created.body.statusReason, undefined);
      assert.equal(created.body.accountId, accountId);
      assert.equal(created.body.region, "local");
      assert.equal(created.body.resourceCounts, undefined);

      const changed = await call("PUT", "/workspaces/team-a", {
        body: { ...created.body, displayName: "Team Alpha", runtime: { generation: "mk3" } },
        headers: { "if-match": String(created.headers.get("etag")) },
      });
      assert.equal(changed.body.displayName, "Team Alpha");
      assert.deepEqual(changed.body.labels, { tier: "gold" });
      assert.deepEqual(changed.body.runtime, { generation: "mk3" });
      const stale = await call("PUT", "/workspaces/team-a", {
        body: { displayName: "x" },
        headers: { "if-match": String(created.headers.get("etag")) },
      });
      assert.equal(stale.status, 412);
      const renamed = await call("PUT", "/workspaces/team-a", { body: { name: "team-b" } });
      assert.equal(renamed.body.error, "immutable_field");

      const listed = await call("GET", "/workspaces");
      assert.ok(listed.body.some((workspace: { name: string }) => workspace.name === "team-a"));
      assert.equal((await create("team-a")).status, 409);
      const once = await Promise.all(
        Array.from({ length: 3 }, () =>
          call("POST", "/workspaces", { body: { name: "once" }, headers: { "idempotency-key": "w1" } }),
        ),
      );
      assert.deepEqual(new Set(once.map(({ status, body }) => `${status} ${body.id}`)).size, 1);
    });

    test("the name, the account and the roles are checked", async () => {
      for (const name of ["v1x", "oauth", "service", "service-desk", "availability", "Upper", "-x", "a".repeat(50)])
        assert.equal((await create(name)).status, 400, name);
      const broken = await create("broken", { groupMappings: [{ groupName: "g", role: "emperor" }] });
      assert.equal(broken.status, 400);
      assert.match(broken.body.message, /groupMappings\[0\]\.role/);
      assert.equal((await create("elsewhere", { accountId: "not-mine" })).status, 403);
      const robot = await makeServiceAccount(store, "main", "admin");
      assert.equal((await create("by-robot", {}, robot.key)).status, 403);
      const seen = await call("GET", "/workspaces", { key: robot.key });
      assert.deepEqual(
        seen.body.map((workspace: { name: string }) => workspace.name),
        ["main"],
      );
    });

    test("availability says whether and why not", async () => {
      const ask = (name: string, reason = true) =>
        call("POST", `/workspaces/availability${reason ? "?withReason=true" : ""}`, { body: { name } });
      assert.equal((await ask("brand-new", false)).body, true);
      assert.equal((await ask("main", false)).body, false);
      assert.deepEqual((await ask("brand-new")).body, { available: true });
      assert.equal((await ask("main")).body.reason, "taken");
      assert.equal((await ask("console")).body.reason, "forbidden_reserved");
      assert.equal((await ask("service-x")).body.reason, "forbidden_service");
      assert.equal((await ask("v2")).body.reason, "forbidden_v_prefix");
      assert.equal((await ask("Not A Name")).status, 400);
    });

    test("whoever creates a workspace becomes its admin; others of the account are not let in", async () => {
      const maker = await makeUser(store, accountId, "member");
      const colleague = await makeUser(store, accountId, "member");
      assert.equal((await create("makers", {}, maker.key)).status, 200);
      const changed = await call("PUT", "/workspaces/makers", { body: { displayName: "Mine" }, key: maker.key });
      assert.equal(changed.status, 200);
      const peek = await call("GET", "/workspaces/makers", { key: colleague.key });
      assert.equal(peek.status, 404);
      assert.equal((await call("DELETE", "/workspaces/makers", { key: colleague.key })).status, 404);
    });

    test("a workspace of another account is invisible", async () => {
      const other = await makeAccount(store, "hidden");
      const owner = await makeUser(store, other.id, "admin", { hidden: "admin" });
      assert.equal((await call("GET", "/workspaces/hidden")).status, 404);
      assert.equal((await call("PUT", "/workspaces/hidden", { body: { displayName: "x" } })).status, 404);
      assert.equal((await call("DELETE", "/workspaces/hidden")).status, 404);
      assert.equal((await call("GET", "/workspaces/hidden", { key: owner.key })).status, 200);
      const names = (await call("GET", "/workspaces")).body.map((workspace: { name: string }) => workspace.name);
      assert.ok(!names.includes("hidden"));
    });

    test("counts are there when asked for, and complete", async () => {
      await create("counted");
      await addDrive("counted", "d1");
      await addDrive("counted", "d2");
      await makeServiceAccount(store, "counted");
      const { body } = await call("GET", "/workspaces/counted?countResources=true");
      assert.deepEqual(Object.keys(body.resourceCounts).sort(), [
        ...["agents", "customdomains", "drives", "functions", "images", "integrationconnections", "jobs", "models"],
        ...["policies", "previews", "sandboxes", "serviceaccounts", "volumes", "volumetemplates"],
      ]);
      assert.equal(body.resourceCounts.drives, 2);
      assert.equal(body.resourceCounts.serviceaccounts, 1);
      assert.equal(body.resourceCounts.volumes, 0);
    });

    test("a workspace that cannot get ready says why", async () => {
      await create("sick");
      await store.write(async ({ queries }) => {
        await queries.deleteFrom("workspace_members").where("workspace", "=", "sick").execute();
        await queries.updateTable("workspaces").set({ status: "created" }).where("name", "=", "sick").execute();
      });
      await settleWorkspace(store, "sick");
      const { body } = await call("GET", "/workspaces/sick");
      assert.equal(body.status, "error");
      assert.match(body.statusReason, /Nobody administers it/);
    });

    test("leaving needs another admin to stay", async () => {
      const second = await makeUser(store, accountId, "member");
      await create("leavers");
      assert.equal((await call("DELETE", "/workspaces/leavers/leave")).status, 409);
      await store.write((tx) => store.people.setMember(tx, "leavers", second.sub, "admin"));
      assert.equal((await call("DELETE", "/workspaces/leavers/leave", { key: second.key })).status, 200);
      assert.equal((await call("GET", "/workspaces/leavers", { key: second.key })).status, 404);
      assert.equal((await call("DELETE", "/workspaces/leavers/leave", { key: second.key })).status, 404);
    });

    test("a delete takes everything in it along and says so", async () => {
      await create("doomed");
      for (const name of ["d1", "d2", "d3"]) await addDrive("doomed", name);
      await call("POST", "/vpcs", { body: { metadata: { name: "lab" }, spec: {} }, workspace: "doomed" });
      const robot = await makeServiceAccount(store, "doomed", "admin");
      await store.people.invite(
        "doomed",
        "late@example.test",
        "member",
        { invitedBy: "test", madeWith: null },
        Date.now() + 1e6,
      );
      const deleted = await call("DELETE", "/workspaces/doomed");
      assert.equal(deleted.status, 200, JSON.stringify(deleted.body));
      assert.equal(deleted.body.name, "doomed");
      assert.equal(deleted.body.resourceCounts, undefined, "only a read that asks for them has counts");
      assert.match(deleted.body.message, /3 drives, 1 serviceaccounts, 1 vpcs/);
      assert.equal((await call("GET", "/workspaces/doomed")).status, 404);
      assert.equal((await call("GET", "/drives", { key: robot.key })).status, 401);
      assert.deepEqual(await store.people.listInvitations({ workspace: "doomed" }), []);
      assert.deepEqual(await store.keys.listServiceAccounts("doomed"), []);
      const again = await create("doomed");
      assert.equal(again.status, 200, "the name is free again");
      const empty = await call("GET", "/drives", { workspace: "doomed" });
      assert.deepEqual(empty.body.data, [], "and nothing of the old one comes back");
    });

    test("a marked workspace is closed at once and goes on going after a crash", async () => {
      await create("crashed");
      for (let n = 0; n < 5; n += 1) await addDrive("crashed", `d${n}`);
      await store.workspaces.markDeleted("crashed", "test");
      // 403 once the news has arrived, 404 from the transaction itself before that.
      assert.ok([403, 404].includes((await addDrive("crashed", "late")).status));
      await assert.rejects(
        store.keys.createServiceAccount({
          workspace: "crashed",
          name: "late",
          description: "",
          role: "admin",
          createdBy: "test",
        }),
        /does not exist/,
      );
      assert.equal((await create("crashed")).status, 409);
      await resumeWorkspaceRemovals({ store, logs: { forgetWorkspace: async () => {} }, reconciledKinds: [] });
      assert.equal(await store.workspaces.isNameTaken("crashed"), false);
      assert.deepEqual(await store.resources.countsIn("crashed"), {});
    });
  });
}
