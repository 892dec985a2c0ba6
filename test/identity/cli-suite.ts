/** Signing in as people do it: `berth login` in one window, a browser in another. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ADMIN_EMAIL } from "../../src/auth/bootstrap.ts";
import { type Ended, type RunOptions, runBerth, type Spawned, spawnBerth } from "../berth-process.ts";
import type { ApiSuite } from "../each-platform.ts";
import { Browser } from "./browser.ts";
import { PASSWORD } from "./people.ts";
import { program } from "./program.ts";

export interface CommandLine extends Pick<ApiSuite, "call" | "url"> {
  apiKey(): string;
  /** The project's folder; default this one. */
  root?: string;
}

export function cliSignIn({ call, url, apiKey, root }: CommandLine): void {
  const home = mkdtempSync(join(tmpdir(), "berth-home-"));
  after(() => rmSync(home, { recursive: true, force: true }));
  // An admin of several workspaces has to say which.
  const env = { BERTH_DATA: home, BERTH_WORKSPACE: "main" };
  const profiles = join(home, "profiles.json");
  const kept = () => {
    const { current, profiles: all } = JSON.parse(readFileSync(profiles, "utf8"));
    return all[current];
  };
  const from = root === undefined ? {} : { root };
  const run = (args: string[], options: RunOptions): Promise<Ended> => runBerth(args, { ...from, ...options });
  const spawn = (args: string[], options: RunOptions): Spawned => spawnBerth(args, { ...from, ...options });
  const accountId = async (): Promise<string> => (await call("GET", "/accounts")).body[0].id;

  test("the first admin sets a password with the key of the machine", async () => {
    const own = { BERTH_URL: url(), BERTH_API_KEY: apiKey(), BERTH_DATA: home };
    const short = await run(["passwd"], { env: own, input: "short\n" });
    assert.equal(short.code, 2, short.stderr);
    const set = await run(["passwd"], { env: own, input: `${PASSWORD}\n` });
    assert.equal(set.code, 0, set.stderr);
    assert.ok(!(set.stdout + set.stderr).includes(PASSWORD));
  });

  test("login shows where to go, and waits for the person in the browser", async () => {
    const login = spawn(["login", url(), "--browser"], { env });
    const [, address = ""] = await login.printed(/open (\S+) in a browser/);
    const browser = new Browser(url());
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
    assert.equal((await run(["list", "drives"], { env })).code, 0);
    assert.equal((await run(["token"], { env })).stdout, `${tokens.accessToken}\n`);
  });

  test("tokens renew themselves, once for all commands that run at the time", async () => {
    const { tokens: before } = kept();
    const file = JSON.parse(readFileSync(profiles, "utf8"));
    file.profiles[file.current].tokens.expiresAt = 0;
    writeFileSync(profiles, JSON.stringify(file));
    const ended = await Promise.all(Array.from({ length: 3 }, () => run(["list", "drives"], { env })));
    assert.deepEqual(
      ended.map(({ code }) => code),
      [0, 0, 0],
      ended.map(({ stderr }) => stderr).join(),
    );
    assert.notEqual(kept().tokens.refreshToken, before.refreshToken);
    assert.equal((await run(["list", "drives"], { env })).code, 0);
  });

  test("somebody of the account gets a new password from its admin", async () => {
    const added = await run(["create", "account-user", await accountId(), "--set", "email=Bo@example.test"], {
      env,
    });
    assert.equal(added.code, 0, added.stderr);
    const set = await run(["passwd", "bo@example.test"], { env, input: `${PASSWORD}\n` });
    assert.equal(set.code, 0, set.stderr);
    const bo = await program(url()).tokens({ email: "bo@example.test", password: PASSWORD });
    assert.ok(bo.access);
    // One's own needs the old one, as these are no longer the credentials of the machine.
    const own = await run(["passwd"], { env, input: "another long password\n" });
    assert.equal(own.code, 4, own.stderr);
  });

  test("logout ends the session on the server too", async () => {
    const { tokens } = kept();
    const ended = await run(["logout"], { env });
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(ended.stderr, /session on the server/);
    assert.equal((await call("GET", "/drives", { key: tokens.accessToken })).status, 401);
    assert.equal((await run(["list", "drives"], { env })).code, 2);
  });
}
