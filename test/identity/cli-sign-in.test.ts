/** Signing in on the machine of the server; the rest is done with an installation (cli-suite.ts, test/installed). */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { ADMIN_EMAIL } from "../../src/auth/bootstrap.ts";
import { verifyPassword } from "../../src/auth/passwords.ts";
import { runBerth } from "../berth-process.ts";
import { startTestPlatform, TEST_KEY, type TestPlatform } from "../platform.ts";

describe("signing in from a terminal", () => {
  let platform: TestPlatform;
  const dataDir = mkdtempSync(join(tmpdir(), "berth-sign-in-"));
  const home = mkdtempSync(join(tmpdir(), "berth-home-"));
  const env = { BERTH_DATA: home };
  const profiles = join(home, "profiles.json");

  before(async () => {
    platform = await startTestPlatform({ dataDir });
  });
  after(async () => {
    await platform.stop();
    for (const dir of [dataDir, home]) rmSync(dir, { recursive: true, force: true });
  });

  const accountId = async (): Promise<string> => (await platform.call("GET", "/accounts")).body[0].id;

  test("a sign-in that was ended elsewhere says what to do", async () => {
    const tokens = { accessToken: "x", refreshToken: "x", expiresAt: 0 };
    const far = { url: platform.url, tokens };
    writeFileSync(profiles, JSON.stringify({ current: "far", profiles: { far } }));
    const ended = await runBerth(["list", "drives"], { env });
    assert.equal(ended.code, 2);
    assert.match(ended.stderr, /berth login/);
  });

  test("the server on this machine needs no browser", async () => {
    const credentials = { url: platform.url, workspace: "main", apiKey: TEST_KEY };
    writeFileSync(join(home, "credentials.json"), JSON.stringify(credentials));
    for (const args of [["login"], ["login", platform.url]])
      assert.equal((await runBerth(args, { env })).code, 0, args.join(" "));
    assert.equal((await runBerth(["list", "drives"], { env })).code, 0);
  });

  test("who runs the machine sets a password when nobody else can", async () => {
    const reset = (input: string) =>
      runBerth(["reset-password", ADMIN_EMAIL, "--data", dataDir], { input, env: { BERTH_DATA: dataDir } });
    assert.equal((await reset("a new long password\n")).code, 5, "the server runs");
    await platform.stop();
    assert.equal((await reset("short\n")).code, 2);
    const done = await reset("a new long password\n");
    assert.equal(done.code, 0, done.stderr);
    platform = await startTestPlatform({ dataDir });
    const admin = await platform.app.store.people.getUser(ADMIN_EMAIL);
    assert.ok(await verifyPassword("a new long password", admin?.password_hash ?? null));
    const { body } = await platform.call("GET", `/accounts/${await accountId()}/audit?action=passwordReset`);
    assert.deepEqual([body.data[0].target, body.data[0].actor.type], [ADMIN_EMAIL, "operator"]);
  });
});
