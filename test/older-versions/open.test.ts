/**
 * Every later version opens what an older one left behind: it migrates the database, shows the same resources, reads
 * their secrets, and takes the credentials that were given out before. The fixtures are in test/fixtures.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { takeNextKey } from "../../src/auth/secret-key.ts";
import { readKeyFile, secretKeyFile } from "../../src/auth/secret-key-files.ts";
import { KINDS } from "../../src/kinds/index.ts";
import { fingerprintOf } from "../../src/lib/sealed-box.ts";
import { type TestPlace, testDatabases } from "../databases.ts";
import { EVERY_KIND, WRITTEN_BY_THE_PLATFORM } from "../every-kind.ts";
import { DEVICE_GRANT, program } from "../identity/program.ts";
import { sizesMissing } from "../local/machine.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { assertClosedTo } from "../rotation/content.ts";
import { machineSkip } from "../sandbox-suite.ts";
import { eventually } from "../sandboxd-harness.ts";
import { goBackTo } from "./back-then.ts";
import { type Expected, expectedOf, olderVersions, unpack } from "./fixture.ts";
import { lookAt } from "./shown.ts";

/** What the platform observes by itself, which a newer one may tell differently. */
const OBSERVED = new Set([
  "status",
  "state",
  "events",
  "errors",
  "isolation",
  "expiresIn",
  "updatedAt",
  "updatedBy",
  "lastUsedAt",
  "total",
]);
const KEPT_FILE = { command: "cat /disk/kept.txt", waitForCompletion: true };

const databases = await testDatabases();
after(() => databases.stop());
// All fixtures of one run are of about the same day; each is opened a minute after it was made.
const [newest = ""] = olderVersions
  .map((version) => expectedOf(version, "postgres").madeAt)
  .sort()
  .reverse();
goBackTo(new Date(Date.parse(newest) + 60_000).toISOString());

test("there is something of every kind", () => {
  const there = new Set([...EVERY_KIND.map(({ kind }) => kind), ...WRITTEN_BY_THE_PLATFORM]);
  assert.deepEqual(
    KINDS.map(({ name }) => name).filter((name) => !there.has(name)),
    [],
  );
});

for (const version of olderVersions)
  for (const database of databases.all)
    describe(`what ${version} left on ${database.name}`, { skip: database.skip }, () => {
      const old = expectedOf(version, database.name);
      const { credentials } = old;
      let place: TestPlace;
      let platform: TestPlatform;
      const start = async (): Promise<void> => {
        const config = { public_url: old.publicUrl, api_key: credentials.apiKey };
        platform = await startTestPlatform({ ...place, config });
      };
      const call: TestPlatform["call"] = (method, path, options = {}) =>
        platform.call(method, path, { key: credentials.apiKey, workspace: "main", ...options });
      const statusWith = async (key: string): Promise<number> => (await call("GET", "/drives", { key })).status;

      before(async () => {
        place = await database.fresh();
        await unpack(version, database.name, place);
        await start();
      });
      after(async () => {
        await platform?.stop();
        place.remove();
      });

      const showsTheSame = async (): Promise<void> => {
        const now = await lookAt(call);
        for (const [path, before] of Object.entries(old.shown)) assertHolds(now[path], before, path);
      };

      test("every resource is shown as before", showsTheSame);

      const secretsAreReadable = async (): Promise<void> => {
        for (const path of ["/agents/speaker", "/functions/tool", "/jobs/batch", "/sandboxes/box"]) {
          const { body } = await call("GET", `${path}?show_secrets=true`);
          const found = body.spec.runtime.envs.find(({ name }: { name: string }) => name === "PASSWORD");
          assert.equal(found.value, old.secret, path);
        }
        const [token] = (await call("GET", "/sandboxes/box/previews/web/tokens")).body;
        assert.deepEqual(token?.spec.token, old.shown["/sandboxes/box/previews/web/tokens"]?.[0].spec.token);
      };
      test("secrets are readable", secretsAreReadable);

      test("its key is replaced while the server runs, and everything stays as it was", async () => {
        const { store } = platform.app;
        const key = readKeyFile(secretKeyFile(place.dataDir)) ?? assert.fail();
        const next = takeNextKey({ data: place.dataDir }) ?? assert.fail();
        const { resealed, unreadable } = await store.rotateKey(fingerprintOf(next), { answersMs: 60_000 });
        assert.ok(resealed > 20, `${resealed} values`);
        assert.equal(unreadable, 0);
        await assertClosedTo(key, store);
        // A server that knows the new key only.
        await platform.stop();
        await start();
        assert.equal(platform.app.store.keyring.has(fingerprintOf(key)), false);
        await showsTheSame();
        await secretsAreReadable();
      });

      test("keys, client secrets, tokens and passwords are still good", async () => {
        const { robot, robotKey, person, given } = credentials;
        for (const key of [robotKey, given.machine, given.access]) assert.equal(await statusWith(key), 200, key);
        const { post, refresh, tokens } = program(platform.url, old.publicUrl);
        const { client_id, client_secret } = robot;
        const machine = await post("/oauth/token", { grant_type: "client_credentials", client_id, client_secret });
        assert.equal(await statusWith(machine.body.access_token ?? ""), 200, JSON.stringify(machine.body));
        const waiting = { grant_type: DEVICE_GRANT, client_id: "service", device_code: given.deviceCode };
        assert.equal((await post("/oauth/token", waiting)).body.error, "authorization_pending");
        const sessions = await call("GET", "/users/me/sessions", { key: given.access });
        assert.ok(
          sessions.body.some(({ type }: { type: string }) => type === "browser"),
          JSON.stringify(sessions.body),
        );
        const renewed = await refresh(given.refresh);
        assert.equal(await statusWith(renewed.body.access_token ?? ""), 200, JSON.stringify(renewed.body));
        const again = await tokens(person);
        assert.equal(await statusWith(again.access), 200);
      });

      test("what was used is still on the bill, and the audit log is whole", async () => {
        const { data } = (await call<Expected["metrics"]>("GET", old.metrics.path)).body;
        assert.ok(old.metrics.data.length > 0);
        for (const { billingDimension, summary } of old.metrics.data) {
          const now = data.find((each) => each.billingDimension === billingDimension);
          assert.ok((now?.summary.usage ?? 0) >= summary.usage, billingDimension);
        }
        const verified = await call("GET", "/audit/verify");
        assert.equal(verified.body.intact, true, JSON.stringify(verified.body));
      });

      test("sign-ins that 0.1.0's bundle kept without a name are gone, and people sign in again", async () => {
        const { broken, person } = credentials;
        const { read } = platform.app.store.database;
        const nameless = await read.selectFrom("oauth_records").select("id").where("model", "=", "").execute();
        assert.deepEqual(nameless, []);
        const { post, refresh, tokens } = program(platform.url, old.publicUrl);
        for (const key of [broken.machine, broken.access]) assert.equal(await statusWith(key), 401);
        assert.equal((await refresh(broken.refresh)).body.error, "invalid_grant");
        const device = { grant_type: DEVICE_GRANT, client_id: "service", device_code: broken.deviceCode };
        assert.equal((await post("/oauth/token", device)).body.error, "invalid_grant");
        assert.equal(await statusWith((await tokens(person)).access), 200);
      });

      test("a second start finds it as the first one left it", async () => {
        await platform.stop();
        await start();
        await showsTheSame();
      });
    });

for (const version of olderVersions)
  test(`code, volumes and drives of ${version} run on this machine`, {
    skip: machineSkip || sizesMissing,
  }, async () => {
    const old = expectedOf(version, "sqlite");
    const key = old.credentials.apiKey;
    const place = await (databases.all[0] ?? assert.fail()).fresh();
    await unpack(version, "sqlite", place);
    await using platform = await startTestPlatform({
      ...place,
      driver: "real",
      config: { api_key: key, pool_size: "0", on_stop: "kill" },
    });
    const ask = (path: string, body: object): Promise<Response> =>
      fetch(`${platform.url}/main/${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    // Nothing of it runs at first: the server finds that out and starts it again.
    await eventually(async () => (await (await ask("agents/speaker", {})).text()).includes(old.secret));
    await eventually(async () => /kept/.test(await (await ask("sandboxes/box/process", KEPT_FILE)).text()));
  });

/** Everything that was there is there; what is new beside it is none of our business. */
function assertHolds(now: unknown, before: unknown, where: string): void {
  if (Array.isArray(before)) {
    assert.ok(Array.isArray(now) && now.length >= before.length, `${where}: ${JSON.stringify(now)}`);
    for (const [index, value] of before.entries()) {
      // An hour may begin meanwhile, with which the hourly job has a new execution before the old one.
      const id = idOf(value);
      const same = id === undefined ? now[index] : now.find((each) => idOf(each) === id);
      assertHolds(same, value, `${where}[${index}]`);
    }
  } else if (typeof before === "object" && before !== null) {
    assert.ok(typeof now === "object" && now !== null, where);
    for (const [name, value] of Object.entries(before))
      if (!OBSERVED.has(name)) assertHolds((now as Record<string, unknown>)[name], value, `${where}.${name}`);
  } else assert.deepEqual(now, before, where);
}

/** A quota is known by the kind of resource that it limits. */
const idOf = (value: { metadata?: { id?: string }; resource?: string } | null): string | undefined =>
  value?.metadata?.id ?? value?.resource;
