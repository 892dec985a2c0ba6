/** A rotation with two servers on one PostgreSQL, each with a data folder of its own. */
import assert from "node:assert/strict";
import { copyFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { takeNextKey } from "../../src/auth/secret-key.ts";
import { nextKeyFile, readKeyFile, secretKeyFile } from "../../src/auth/secret-key-files.ts";
import { fingerprintOf } from "../../src/lib/sealed-box.ts";
import { type TestPlace, testDatabases } from "../databases.ts";
import { type Answer, startTestPlatform, type TestPlatform } from "../platform.ts";
import { eventually } from "../sandboxd-harness.ts";

const databases = await testDatabases();
after(() => databases.stop());
const postgres = databases.all.find(({ name }) => name === "postgres") ?? assert.fail();

describe("two servers with the key in a file each", { skip: postgres.skip }, () => {
  const places: TestPlace[] = [];
  const platforms: TestPlatform[] = [];
  const [one, two] = [() => platforms[0] ?? assert.fail(), () => platforms[1] ?? assert.fail()];
  const copyToTwo = (file: (dataDir: string) => string): void =>
    copyFileSync(file(places[0]?.dataDir ?? ""), file(places[1]?.dataDir ?? ""));
  const hide = (platform: TestPlatform, name: string): Promise<Answer> =>
    platform.call("POST", "/agents", {
      body: {
        metadata: { name },
        spec: { runtime: { image: "x", envs: [{ name: "T", value: `secret of ${name}`, secret: true }] } },
      },
    });
  const assertShows = async (platform: TestPlatform, name: string): Promise<void> => {
    const { body } = await platform.call("GET", `/agents/${name}?show_secrets=true`);
    assert.equal(body.spec?.runtime.envs[0].value, `secret of ${name}`, JSON.stringify(body));
  };
  before(async () => {
    const first = await postgres.migrated();
    places.push(first, await postgres.migrated());
    const { databaseUrl } = first;
    platforms.push(await startTestPlatform({ dataDir: first.dataDir, databaseUrl }));
    copyToTwo(secretKeyFile);
    platforms.push(await startTestPlatform({ dataDir: places[1]?.dataDir ?? "", databaseUrl }));
  });
  after(async () => {
    for (const platform of platforms) await platform.stop();
    for (const place of places) place.remove();
  });

  test("the rotation is refused while one does not have the new key, and ends at both once it has", async () => {
    assert.equal((await hide(one(), "before")).status, 200);
    const old = one().app.store.keyring.newest;
    const next = takeNextKey({ data: one().dataDir }) ?? assert.fail();
    const to = fingerprintOf(next);
    const { rotateKey, keyRecords } = one().app.store;
    await assert.rejects(
      rotateKey(to, { answersMs: 1 }),
      /other servers? of this database do(es)? not have the new key/,
    );
    assert.deepEqual(await keyRecords.state(), { fingerprint: old, rotation: null, ended: null });
    await assertShows(two(), "before");

    copyToTwo(nextKeyFile);
    await rotateKey(to, { answersMs: 60_000 });
    await eventually(() => two().app.store.keyring.newest === to, "the other server seals with the new key");
    await eventually(
      () => [0, 1].every((n) => readKeyFile(secretKeyFile(places[n]?.dataDir ?? ""))?.equals(next)),
      "the new key is in use in both folders",
    );
    assert.equal((await hide(two(), "after")).status, 200);
    for (const platform of platforms) for (const name of ["before", "after"]) await assertShows(platform, name);

    // A server that has missed all of that.
    two().app.store.keyring.sealWith(old);
    const stale = await hide(two(), "stale");
    assert.equal(stale.status, 503);
    assert.match(JSON.stringify(stale.body), /was replaced and this server does not use the new one yet/);
    // And one that cannot know the key any more.
    two().app.store.keyring.sealWith("0123456789abcdef");
    const lost = await hide(two(), "lost");
    assert.equal(lost.status, 503);
    assert.match(JSON.stringify(lost.body), /does not have the key 0123456789abcdef/);
    await assertShows(one(), "after");
  });
});
