/** Commands that people try in their first hour. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Ended, runBerth } from "../berth-process.ts";
import { startTestPlatform, TEST_KEY, type TestPlatform } from "../platform.ts";

let platform: TestPlatform;
let folder: string;
let env: Record<string, string>;

before(async () => {
  platform = await startTestPlatform();
  folder = mkdtempSync(join(tmpdir(), "berth-first-contact-"));
  env = { BERTH_DATA: join(folder, "data"), BERTH_URL: platform.url, BERTH_API_KEY: TEST_KEY };
});
after(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

const berth = (...args: string[]): Promise<Ended> => runBerth(args, { env });

describe("the command line in the first hour", () => {
  test("a mistyped command is told with the one that was probably meant", async () => {
    const { code, stderr } = await berth("sandbx", "list");
    assert.equal(code, 2);
    assert.match(stderr, /unknown command 'sandbx'\. Did you mean sandbox\?/);
    assert.equal((await berth("zzzzzz")).code, 2);
  });

  test("logs of a workload that never was are not found", async () => {
    const { code, stderr } = await berth("logs", "agent/nope");
    assert.equal(code, 3);
    assert.match(stderr, /agent 'nope' does not exist/);
  });

  test("what there is only one of is read without a name", async () => {
    for (const noun of ["changelog", "configuration"]) {
      const { code, stderr } = await berth(noun, "get");
      assert.equal(code, 0, `${noun}: ${stderr}`);
    }
  });

  test("a list of sandboxes says which are running", async () => {
    assert.equal((await platform.call("POST", "/sandboxes", { body: { metadata: { name: "box" } } })).status, 200);
    assert.match((await berth("sandbox", "list")).stdout, /STATUS +STATE +AGE\nbox .* DEPLOYED +RUNNING /);
  });

  test("a manifest that is applied again changes nothing and says so; a new secret is a change", async () => {
    const file = join(folder, "again.yaml");
    const manifest = (memory: number, secret: string): void =>
      writeFileSync(
        file,
        `kind: agent\nmetadata: {name: again}\nspec: {runtime: {memory: ${memory}, envs: [{name: TOKEN, value: ${secret}, secret: true}]}}\n`,
      );
    const applied = async (): Promise<string> => (await berth("apply", "-f", file)).stdout;
    manifest(512, "first");
    assert.equal(await applied(), "agent 'again' created\n");
    assert.equal(await applied(), "agent 'again' unchanged\n");
    manifest(1024, "first");
    assert.equal(await applied(), "agent 'again' configured\n");
    assert.equal(await applied(), "agent 'again' unchanged\n");
    manifest(1024, "second");
    assert.equal(await applied(), "agent 'again' configured\n");
  });

  test("profiles are listed, chosen and removed; a login under a name does not switch to it", async () => {
    const own = { BERTH_DATA: join(folder, "profiles"), HOME: folder };
    const run = (args: string[], input?: string): Promise<Ended> =>
      runBerth(args, { env: own, ...(input === undefined ? {} : { input }) });
    const { host } = new URL(platform.url);
    assert.equal((await run(["login", platform.url], `${TEST_KEY}\n`)).code, 0);
    const login = await run(["login", platform.url, "--profile", "lab"], `${TEST_KEY}\n`);
    assert.equal(login.code, 0, login.stderr);
    assert.match(login.stderr, /berth profiles use lab/);
    const current = async (): Promise<string[]> =>
      JSON.parse((await run(["profiles", "list", "-o", "json"])).stdout)
        .filter((row: { current: string }) => row.current === "*")
        .map((row: { name: string }) => row.name);
    assert.deepEqual(await current(), [host]);
    assert.equal((await run(["profiles", "use", "lab"])).code, 0);
    assert.deepEqual(await current(), ["lab"]);
    const unknown = await run(["profiles", "use", "lob"]);
    assert.equal(unknown.code, 2);
    assert.match(unknown.stderr, /Did you mean lab\?/);
    assert.equal((await run(["profiles", "remove", "lab"])).code, 0);
    assert.doesNotMatch((await run(["profiles", "list"])).stdout, /^lab /m);
  });

  test("a login under a name makes a profile of the server on this machine; an unknown name is told with its neighbour", async () => {
    const own = { BERTH_DATA: join(folder, "at-home"), HOME: folder };
    mkdirSync(own.BERTH_DATA);
    const credentials = { url: platform.url, workspace: "main", apiKey: TEST_KEY };
    writeFileSync(join(own.BERTH_DATA, "credentials.json"), JSON.stringify(credentials));
    const run = (...args: string[]): Promise<Ended> => runBerth(args, { env: own });
    const mistyped = await run("sandbox", "list", "--profile", "lcal");
    assert.equal(mistyped.code, 2);
    assert.match(mistyped.stderr, /no profile 'lcal'; known: local\. Did you mean local\?/);
    const login = await run("login", "--profile", "home");
    assert.equal(login.code, 0, login.stderr);
    assert.match(login.stderr, /profile 'home' in .*\n.*berth profiles use home/);
    const listed = JSON.parse((await run("profiles", "list", "-o", "json")).stdout) as { name: string }[];
    assert.deepEqual(listed.map(({ name }) => name).sort(), ["home", "local"]);
    assert.equal((await run("sandbox", "list", "--profile", "home")).code, 0);
    assert.match(
      (await run("sandbox", "list", "--profile", "hone")).stderr,
      /known: local, home\. Did you mean home\?/,
    );
    assert.match((await run("login", "--profile", "local")).stderr, /using the server on this machine/);
  });

  test("a setting that is on or off needs no value", async () => {
    const told = async (flag: string): Promise<string> =>
      (await berth("up", "--check-config", flag, "--port", "9000")).stdout;
    assert.match(await told("--insecure-http"), /^insecure_http = true$/m);
    assert.match(await told("--insecure-http=false"), /^insecure_http = false$/m);
    assert.match(await told("--insecure-http"), /^port = 9000$/m);
  });
});
