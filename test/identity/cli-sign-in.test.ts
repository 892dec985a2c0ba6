/** Signing in as people do it: `berth login` in one window, a browser in another. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { ADMIN_EMAIL } from "../../src/auth/bootstrap.ts";
import { verifyPassword } from "../../src/auth/passwords.ts";
import { runBerth, spawnBerth } from "../berth-process.ts";
import { startTestPlatform, TEST_KEY, type TestPlatform } from "../platform.ts";
import { Browser } from "./browser.ts";

const PASSWORD = "correct horse battery";

describe("signing in from a terminal", () => {
  let platform: TestPlatform;
  const dataDir = mkdtempSync(join(tmpdir(), "berth-sign-in-"));
  const home = mkdtempSync(join(tmpdir(), "berth-home-"));
  const env = { BERTH_DATA: home };
  const profiles = join(home, "profiles.json");
  const kept = () => {
    const { current, profiles: all } = JSON.parse(readFileSync(profiles, "utf8"));
    return all[current];
  };

  before(async () => {
    platform = await startTestPlatform({ dataDir });
  });
  after(async () => {
    await platform.stop();
    for (const dir of [dataDir, home]) rmSync(dir, { recursive: true, force: true });
  });

  test("the first admin sets a password with the key of the machine", async () => {
    const own = { BERTH_URL: platform.url, BERTH_API_KEY: TEST_KEY, BERTH_DATA: home };
    const short = await runBerth(["passwd"], { env: own, input: "short\n" });
    assert.equal(short.code, 1, short.stderr);
    const set = await runBerth(["passwd"], { env: own, input: `${PASSWORD}\n` });
    assert.equal(set.code, 0, set.stderr);
    assert.ok(!(set.stdout + set.stderr).includes(PASSWORD));
  });

  test("login shows where to go, and waits for the person in the browser", async () => {
    const login = spawnBerth(["login", platform.url, "--browser"], { env });
    const [, address = ""] = await login.printed(/open (\S+) in a browser/);
    const browser = new Browser(platform.url);
    // The address carries the code, so the page has it filled in.
    const confirm = await browser.submit(await browser.visit(address), {});
    const page = await browser.submit(confirm, {});
    const consent = await browser.submit(page, { email: ADMIN_EMAIL, password: PASSWORD });
    const done = await browser.submit(consent, { step: "allow" });
    assert.match(done.text, /You are signed in/);
    const ended = await login.ended;
    assert.equal(ended.code, 0, ended.stderr);
    const { tokens } = kept();
    assert.ok(!(ended.stdout + ended.stderr).includes(tokens.refreshToken));
    assert.equal((await runBerth(["list", "drives"], { env })).code, 0);
    assert.equal((await runBerth(["token"], { env })).stdout, `${tokens.accessToken}\n`);
  });

  test("tokens renew themselves, once for all commands that run at the time", async () => {
    const { tokens: before } = kept();
    const file = JSON.parse(readFileSync(profiles, "utf8"));
    file.profiles[file.current].tokens.expiresAt = 0;
    writeFileSync(profiles, JSON.stringify(file));
    const ended = await Promise.all(Array.from({ length: 3 }, () => runBerth(["list", "drives"], { env })));
    assert.deepEqual(
      ended.map(({ code }) => code),
      [0, 0, 0],
      ended.map(({ stderr }) => stderr).join(),
    );
    assert.notEqual(kept().tokens.refreshToken, before.refreshToken);
    assert.equal((await runBerth(["list", "drives"], { env })).code, 0);
  });

  test("somebody of the account gets a new password from its admin", async () => {
    const added = await runBerth(["create", "account-user", await accountId(), "--set", "email=Bo@example.test"], {
      env,
    });
    assert.equal(added.code, 0, added.stderr);
    const set = await runBerth(["passwd", "bo@example.test"], { env, input: `${PASSWORD}\n` });
    assert.equal(set.code, 0, set.stderr);
    const bo = await platform.app.store.people.getUser("bo@example.test");
    assert.ok(await verifyPassword(PASSWORD, bo?.password_hash ?? null));
    // One's own needs the old one, as these are no longer the credentials of the machine.
    const own = await runBerth(["passwd"], { env, input: "another long password\n" });
    assert.equal(own.code, 4, own.stderr);
  });

  test("logout ends the session on the server too", async () => {
    const { tokens } = kept();
    const ended = await runBerth(["logout"], { env });
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(ended.stderr, /session on the server/);
    assert.equal((await platform.call("GET", "/drives", { key: tokens.accessToken })).status, 401);
    assert.equal((await runBerth(["list", "drives"], { env })).code, 2);
  });

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

  const accountId = async (): Promise<string> => (await platform.call("GET", "/accounts")).body[0].id;
});
