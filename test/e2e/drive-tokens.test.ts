import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from "jose";
import { DAY_MS, MINUTE_MS } from "../../src/lib/time/clock.ts";
import type { Store } from "../../src/store/store.ts";
import { testDatabases } from "../databases.ts";
import { makeAccount, makeUser } from "../identities.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

const databases = await testDatabases();
after(() => databases.stop());

for (const database of databases.aboveStore) {
  describe(`drive tokens on ${database.name}`, { skip: database.skip }, () => {
    let platform: TestPlatform;
    let store: Store;
    let aheadMs = 0;
    const call: TestPlatform["call"] = (method, path, options = {}) =>
      platform.call(method, path, { workspace: "main", ...options });
    const keySet = async () => (await call<JSONWebKeySet>("GET", "/drives/jwks.json", { key: null })).body;
    const verify = async (token: string) =>
      jwtVerify(token, createLocalJWKSet(await keySet()), {
        audience: "drives",
        issuer: platform.url,
        currentDate: new Date(Date.now() + aheadMs),
      });
    const addDrive = (name: string, permissions: object[] = []) =>
      call("POST", "/drives", { body: { metadata: { name }, spec: { permissions } } });

    before(async () => {
      platform = await startTestPlatform({
        ...(await database.migrated()),
        clock: { now: () => Date.now() + aheadMs },
      });
      store = platform.app.store;
      await addDrive("d");
    });
    after(() => platform.stop());

    test("a token names the drive, ends soon and is checked with the public keys", async () => {
      const { status, body } = await call("POST", "/drives/d/access-token");
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal(body.token_type, "Bearer");
      assert.equal(body.expires_in, 3600);
      const { payload, protectedHeader } = await verify(body.access_token);
      assert.equal(protectedHeader.alg, "EdDSA");
      assert.equal(payload.drive, "d");
      assert.equal(payload.workspace, "main");
      assert.equal(payload.mode, "read-write");
      assert.equal((payload.exp ?? 0) - (payload.iat ?? 0), 3600);
      for (const key of (await keySet()).keys) assert.equal(key.d, undefined, "only the public half is told");
    });

    test("at most one key is made by many at once, and nothing secret is stored in clear", async () => {
      const made = await Promise.all(Array.from({ length: 5 }, () => call("POST", "/drives/d/access-token")));
      for (const { body } of made) await verify(body.access_token);
      const rows = await store.database.read.selectFrom("signing_keys").selectAll().execute();
      assert.ok(rows.every((row) => !row.sealed_key.includes("PRIVATE") && !row.public_key.includes('"d"')));
    });

    test("a key is replaced in time, and tokens of the old one stay good until they end", async () => {
      const before = (await call("POST", "/drives/d/access-token")).body.access_token;
      aheadMs += 90 * DAY_MS - 10 * MINUTE_MS;
      const last = (await call("POST", "/drives/d/access-token")).body.access_token;
      aheadMs += 20 * MINUTE_MS;
      const next = (await call("POST", "/drives/d/access-token")).body.access_token;
      assert.notEqual(decodeProtectedHeader(next).kid, decodeProtectedHeader(last).kid);
      assert.equal(decodeProtectedHeader(before).kid, decodeProtectedHeader(last).kid);
      await verify(last);
      await verify(next);
      aheadMs += 8 * DAY_MS;
      const kids = (await keySet()).keys.map((key) => key.kid);
      assert.deepEqual(kids, [decodeProtectedHeader(next).kid]);
    });

    test("a workload gets what the drive's permissions give it", async () => {
      await addDrive("guarded", [{ labels: { "service-name": "worker" }, mode: "read", path: "/in" }]);
      await addDrive("closed", [{ labels: { team: "other" } }]);
      const worker = (await call("POST", "/volumes", { body: { metadata: { name: "worker" }, spec: {} } })).body;
      const owner = await store.workloadAccounts.ensure({
        workspace: "main",
        workload: worker.metadata.uid,
        name: "worker",
        scopes: ["drives:get"],
      });
      const { secret } = await store.keys.createKey({
        name: "",
        ownerType: "service_account",
        owner,
        workspace: "main",
        scopes: null,
        createdBy: "test",
        expiresAt: null,
      });
      const { payload } = await verify(
        (await call("POST", "/drives/guarded/access-token", { key: secret })).body.access_token,
      );
      assert.equal(payload.mode, "read");
      assert.equal(payload.path, "/in");
      assert.equal((await call("POST", "/drives/closed/access-token", { key: secret })).status, 403);
    });

    test("nobody opens a drive of another tenant", async () => {
      const other = await makeAccount(store, "elsewhere");
      const owner = await makeUser(store, other.id, "admin", { elsewhere: "admin" });
      const there = { key: owner.key, workspace: "elsewhere" };
      assert.equal((await call("POST", "/drives/d/access-token", there)).status, 404);
      assert.equal((await call("POST", "/drives/d/access-token", { key: owner.key })).status, 403);
      assert.equal((await call("POST", "/drives/none/access-token")).status, 404);
    });
  });
}
