/** `berth rotate-key` as the operator runs it: beside a server that serves, and on a folder whose server is stopped. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { nextKeyFile, oldKeyFile, readKeyFile, secretKeyFile } from "../../src/auth/secret-key-files.ts";
import { fingerprintOf } from "../../src/lib/sealed-box.ts";
import { type Ended, runBerth, startServer } from "../berth-process.ts";
import { caller, TEST_KEY } from "../platform.ts";
import { eventually } from "../sandboxd-harness.ts";

const AGENT = { runtime: { image: "x", envs: [{ name: "TOKEN", value: "very-secret", secret: true }] } };
const DOMAIN = "apps.example.com";

test("the key of a data folder is replaced, with its server running and stopped", async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-rotate-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 }));
  const berth = (...args: string[]): Promise<Ended> => runBerth([...args, "--data", dataDir]);
  const start = () =>
    startServer({ dataDir, env: { BERTH_API_KEY: TEST_KEY, BERTH_DISK_RESERVE: "0", BERTH_POOL_SIZE: "0" } });
  const keyNow = (): string => fingerprintOf(readKeyFile(secretKeyFile(dataDir)) ?? assert.fail());

  const none = await berth("rotate-key");
  assert.match(none.stderr, /There is no platform in .*: it has no secret\.key/);
  assert.ok(!existsSync(nextKeyFile(dataDir)), "nothing is made where there is nothing");

  let server = await start();
  t.after(() => server.stop("SIGKILL"));
  const look = async () => {
    const call = caller(server.url);
    const [agent, domain, audit] = [
      await call("GET", "/agents/speaker?show_secrets=true"),
      await call("GET", `/customdomains/${DOMAIN}`),
      await call("GET", "/audit/verify"),
    ];
    assert.equal(audit.body.intact, true, JSON.stringify(audit.body));
    const { value } = agent.body.spec.runtime.envs[0];
    return { secret: value, records: domain.body.spec.txtRecords };
  };
  const call = caller(server.url);
  for (const [path, name, spec] of [
    ["/agents", "speaker", AGENT],
    ["/customdomains", DOMAIN, {}],
  ] as const) {
    const made = await call("POST", path, { body: { metadata: { name }, spec } });
    assert.equal(made.status, 200, JSON.stringify(made.body));
  }
  const before = await look();
  assert.equal(before.secret, "very-secret");
  assert.match(JSON.stringify(before.records), /verify=/);
  const first = keyNow();
  const backup = join(dataDir, "before.gz");
  assert.equal((await berth("backup", backup)).code, 0);

  const online = await berth("rotate-key");
  assert.equal(online.code, 0, online.stderr);
  const second = keyNow();
  assert.notEqual(second, first);
  assert.match(online.stdout, new RegExp(`sealed with the key ${second}`));
  assert.ok(online.stdout.includes(oldKeyFile(dataDir, first)), online.stdout);
  assert.deepEqual(await look(), before, "the server that was running goes on");
  const { id } = (await call("GET", "/accounts")).body[0];
  const noted = () => call("GET", `/accounts/${id}/audit?action=secretKeyRotated`);
  await eventually(async () => (await noted()).body.data[0]?.target === second, "the audit log tells of it");
  assert.equal((await berth("backup", join(dataDir, "after.gz"), "--with-key")).code, 0);

  await server.stop("SIGKILL");
  const stopped = await berth("rotate-key");
  assert.equal(stopped.code, 0, stopped.stderr);
  assert.match(stopped.stderr, /sealing secrets of resources anew \(\d+ values so far\)/);
  assert.notEqual(keyNow(), second);
  const refused = await berth("restore", backup, "--force");
  assert.equal(refused.code, 5);
  assert.ok(refused.stderr.includes(oldKeyFile(dataDir, first)), "the key that the backup needs is named");
  server = await start();
  assert.deepEqual(await look(), before);

  const database = new DatabaseSync(join(dataDir, "berth.sqlite"));
  database.exec("PRAGMA busy_timeout = 60000");
  const damage = "UPDATE revisions SET secrets = substr(secrets, 1, length(secrets) - 8) || 'AAAAAAAA'";
  assert.equal(database.prepare(damage).run().changes, 1);
  database.close();
  const third = keyNow();
  const told = await berth("rotate-key");
  assert.equal(told.code, 1, "the server's rotation tells what it could not open");
  assert.match(told.stderr, /The rotation is over, but one value was opened by no key/);
  assert.notEqual(keyNow(), third);
});
