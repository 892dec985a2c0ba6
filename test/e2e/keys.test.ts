import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { DAY_MS } from "../../src/lib/time/clock.ts";
import type { Store } from "../../src/store/store.ts";
import { testDatabases } from "../databases.ts";
import { makeAccount, makeServiceAccount, makeUser } from "../identities.ts";
import { startTestPlatform, TEST_KEY, type TestPlatform } from "../platform.ts";

const databases = await testDatabases();
after(() => databases.stop());

for (const database of databases.aboveStore) {
  describe(`service accounts and API keys on ${database.name}`, { skip: database.skip }, () => {
    let platform: TestPlatform;
    let store: Store;
    let accountId: string;
    let aheadMs = 0;
    const call: TestPlatform["call"] = (method, path, options = {}) =>
      platform.call(method, path, { workspace: "main", ...options });
    const works = async (key: string) => (await call("GET", "/drives", { key })).status;

    before(async () => {
      platform = await startTestPlatform({
        ...(await database.migrated()),
        clock: { now: () => Date.now() + aheadMs },
      });
      store = platform.app.store;
      accountId = (await store.people.listAccountsAcrossUsers())[0]?.id ?? "";
      await makeAccount(store, "elsewhere");
    });
    after(() => platform.stop());

    test("a service account shows its secret once and works in its own workspace", async () => {
      const made = await call("POST", "/service_accounts", { body: { name: "ci", description: "builds" } });
      assert.equal(made.status, 200, JSON.stringify(made.body));
      assert.ok(made.body.client_secret.length >= 32);
      assert.equal(made.body.role, "member");
      const id = made.body.client_id;
      assert.ok(await store.keys.verifyServiceAccount(id, made.body.client_secret));

      const key = await call("POST", `/service_accounts/${id}/api_keys`, { body: { name: "k", expires_in: "30d" } });
      assert.equal(key.body.sub, id);
      assert.equal(key.body.sub_type, "service_account");
      assert.equal(key.body.expires_in, "30d");
      assert.equal(await works(key.body.apiKey), 200);
      assert.equal((await call("GET", "/drives", { key: key.body.apiKey, workspace: "elsewhere" })).status, 403);

      const listed = await call("GET", `/service_accounts/${id}/api_keys`);
      assert.equal(listed.body.length, 1);
      assert.equal(listed.body[0].apiKey, undefined);
      assert.ok(key.body.apiKey.startsWith(listed.body[0].prefix));
      const accounts = await call("GET", "/service_accounts");
      const shown = accounts.body.find((account: { client_id: string }) => account.client_id === id);
      assert.equal(shown.client_secret, undefined);
      assert.ok(!JSON.stringify([listed.body, accounts.body]).includes(key.body.apiKey));

      aheadMs += 31 * DAY_MS;
      assert.equal(await works(key.body.apiKey), 401);
      const fresh = await call("POST", `/service_accounts/${id}/api_keys`, { body: {} });
      assert.equal(fresh.body.expiresAt, undefined);
      assert.equal(await works(fresh.body.apiKey), 200);
      await call("DELETE", `/service_accounts/${id}/api_keys/${fresh.body.id}`);
      await refused(() => works(fresh.body.apiKey));
    });

    test("no second service account has the name of another", async () => {
      const make = (name: string) => call("POST", "/service_accounts", { body: { name } });
      const { body } = await make("twin");
      assert.equal((await make("twin")).status, 409);
      const other = (await make("other twin")).body.client_id;
      assert.equal((await call("PUT", `/service_accounts/${other}`, { body: { name: "twin" } })).status, 409);
      assert.equal((await call("PUT", `/service_accounts/${other}`, { body: { name: "other twin" } })).status, 200);
      assert.equal((await call("DELETE", `/service_accounts/${body.client_id}`)).status, 200);
      assert.equal((await make("twin")).status, 200);
    });

    test("a role change and a delete count at once", async () => {
      const made = await call("POST", "/service_accounts", { body: { name: "op", role: "admin" } });
      const path = `/service_accounts/${made.body.client_id}`;
      const { apiKey } = (await call("POST", `${path}/api_keys`, { body: {} })).body;
      assert.equal((await call("GET", `${path}/api_keys`, { key: apiKey })).status, 200);
      const changed = await call("PUT", path, { body: { role: "member", description: "less" } });
      assert.equal(changed.body.name, "op");
      assert.equal(changed.body.description, "less");
      await refused(async () => (await call("GET", `${path}/api_keys`, { key: apiKey })).status);
      const gone = await call("DELETE", path);
      assert.equal(gone.body.client_id, made.body.client_id);
      await refused(() => works(apiKey));
      assert.equal((await call("GET", `${path}/api_keys`)).status, 404);
    });

    test("people have keys of their own", async () => {
      const made = await call("POST", "/api_keys", { body: { name: "laptop", expires_in: "1w" } });
      assert.equal(made.body.sub_type, "user");
      assert.equal(await works(made.body.apiKey), 200);
      const own = await call("GET", "/api_keys", { key: made.body.apiKey });
      assert.ok(own.body.some((key: { id: string }) => key.id === made.body.id));
      const other = await makeUser(store, accountId, "member", { main: "member" });
      const theirs = await call("GET", "/api_keys", { key: other.key });
      assert.equal(theirs.body.length, 1);
      assert.equal((await call("DELETE", `/api_keys/${made.body.id}`, { key: other.key })).status, 404);
      assert.equal((await call("DELETE", `/api_keys/${made.body.id}`)).status, 200);
      await refused(() => works(made.body.apiKey));
      const robot = await makeServiceAccount(store, "main", "admin");
      assert.equal((await call("GET", "/api_keys", { key: robot.key })).status, 403);
    });

    test("a person's key has a workspace for requests that name none", async () => {
      await call("POST", "/workspaces", { body: { name: "annex" } });
      await call("POST", "/drives", { body: { metadata: { name: "there" }, spec: {} }, workspace: "annex" });
      const drives = async (key: string) => {
        const answer = await fetch(`${platform.url}/v0/drives`, { headers: { authorization: `Bearer ${key}` } });
        const body = (await answer.json()) as { metadata: { name: string } }[] | { error: string };
        return Array.isArray(body) ? body.map(({ metadata }) => metadata.name) : body.error;
      };
      const made = async (body: object) => (await call("POST", "/api_keys", { body })).body;
      assert.deepEqual(await drives(TEST_KEY), [], "the first key's is the first workspace");
      const inherited = await made({});
      const other = await made({ workspace: "annex" });
      assert.deepEqual([inherited.workspace, other.workspace], ["main", "annex"]);
      assert.deepEqual([await drives(inherited.apiKey), await drives(other.apiKey)], [[], ["there"]]);
      assert.match((await made({ workspace: "nowhere" })).message, /^workspace: /);
      const guest = await makeUser(store, accountId, "member", { main: "member", annex: "member" });
      assert.equal(await drives(guest.key), "workspace_required");
      await call("DELETE", "/workspaces/annex");
      assert.deepEqual(await drives(other.apiKey), [], "it goes on where there is only one");
      for (const { id } of [inherited, other]) await call("DELETE", `/api_keys/${id}`);
    });

    test("nobody hands on more than they have", async () => {
      const narrow = await call("POST", "/api_keys", { body: { scopes: ["drives:list", "apiKey:write"] } });
      const key = narrow.body.apiKey;
      assert.equal(await works(key), 200);
      assert.equal((await call("GET", "/volumes", { key })).status, 403);
      const wider = await call("POST", "/api_keys", { body: { scopes: ["volumes:list"] }, key });
      assert.equal(wider.status, 403);
      const same = await call("POST", "/api_keys", { body: {}, key });
      assert.deepEqual(same.body.scopes, ["drives:list", "apiKey:write"]);
      const unknown = await call("POST", "/api_keys", { body: { scopes: ["everything:always"] } });
      assert.match(unknown.body.message, /not a scope/);
    });

    test("an expiry is a duration of at most ten years", async () => {
      for (const expires_in of ["0d", "3654d", "1y", "-1d", "soon", "522w"])
        assert.equal((await call("POST", "/api_keys", { body: { expires_in } })).status, 400, expires_in);
      for (const expires_in of ["1s", "15m", "24h", "3653d", "521w"])
        assert.equal((await call("POST", "/api_keys", { body: { expires_in } })).status, 200, expires_in);
    });

    test("other tenants see and reach none of it", async () => {
      const made = await call("POST", "/service_accounts", { body: { name: "hidden" } });
      const stranger = await makeUser(store, accountId, "member", { elsewhere: "admin" });
      const there = { key: stranger.key, workspace: "elsewhere" };
      assert.deepEqual((await call("GET", "/service_accounts", there)).body, []);
      const path = `/service_accounts/${made.body.client_id}`;
      assert.equal((await call("DELETE", path, there)).status, 404);
      assert.equal((await call("POST", `${path}/api_keys`, { ...there, body: {} })).status, 404);
    });

    /** On PostgreSQL the news of a change takes a moment to reach the process that made it. */
    async function refused(ask: () => Promise<number>): Promise<void> {
      const deadline = Date.now() + 60_000;
      while ((await ask()) < 400) assert.ok(Date.now() < deadline, "still allowed");
    }
  });
}
