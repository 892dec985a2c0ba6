/** `berth init` and `berth dev`: from three answers to a program on this machine that uses the platform. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { init } from "../../../src/cli/actions/init.ts";
import type { Context, Invocation } from "../../../src/cli/command.ts";
import { nounsOf } from "../../../src/cli/nouns.ts";
import { createClient } from "../../../src/client/client.ts";
import { KINDS, OPERATIONS } from "../../../src/kinds/index.ts";
import { runBerth, spawnBerth } from "../../berth-process.ts";
import { until } from "../../cluster/world/until.ts";
import { freePort } from "../../free-port.ts";
import { startTestPlatform, TEST_KEY, type TestPlatform } from "../../platform.ts";

let platform: TestPlatform;
let folder: string;
let env: Record<string, string>;

before(async () => {
  platform = await startTestPlatform();
  folder = mkdtempSync(join(tmpdir(), "berth-dev-"));
  env = { BERTH_DATA: join(folder, "data"), BERTH_URL: platform.url, BERTH_API_KEY: TEST_KEY, BERTH_WORKSPACE: "main" };
});
after(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

const write = (name: string, files: Record<string, string>): string => {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(folder, name, path, ".."), { recursive: true });
    writeFileSync(join(folder, name, path), content);
  }
  return join(folder, name);
};

/** A program that answers with its variables and a word, and prints the word once it listens. */
const answers = (word: string): string => `
  require("node:http").createServer((request, response) => response.end(JSON.stringify({ word: "${word}", env: process.env })))
    .listen(process.env.PORT, process.env.HOST, () => console.error("begins with ${word}"));`;

/** A file that is written in two moments restarts the program twice, so nobody may listen for a while. */
const answersWith = (url: string, word: string): Promise<unknown> =>
  until(
    `${url} answers with ${word}`,
    async () => ((await (await fetch(url)).json()) as { word: string }).word === word,
  );

async function developing(dir: string, ...more: string[]) {
  const port = await freePort();
  const started = spawnBerth(["dev", dir, "--port", String(port), ...more], { env });
  return {
    ...started,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      started.child.kill("SIGINT");
      assert.equal((await started.ended).code, 0, started.stderr());
    },
  };
}

/** Calls init as a person at a terminal who types these lines. */
async function typed(
  lines: string[],
  options: Invocation["options"] = {},
  connect: Context["connect"] = () => createClient({ url: platform.url, apiKey: TEST_KEY, workspace: "main" }),
  said: string[] = [],
): Promise<string[]> {
  const context = {
    env,
    canAsk: true,
    ask: async () => lines.shift() ?? null,
    note: (text: string) => void said.push(text),
    print: (text: string) => void said.push(text),
    connect,
  } satisfies Partial<Context>;
  await init(nounsOf(KINDS, OPERATIONS), { args: [], options, context: context as unknown as Context });
  return said;
}

test("init asks what, which template and which name", async () => {
  const dir = join(folder, "asked");
  const said = await typed(["agent", "agent-echo", "my-echo"], { folder: dir });
  assert.match(
    said.join("\n"),
    /What do you make\?[\s\S]*agent[\s\S]*Which template\?[\s\S]*agent-echo {2}\(javascript: /,
  );
  assert.match(said.at(-1) ?? "", /^next: berth deploy /);
  assert.ok(existsSync(join(dir, "index.js")));
  const numbered = join(folder, "numbered");
  await typed(["1", "", ""], { folder: numbered });
  assert.match(readFileSync(join(numbered, "service.toml"), "utf8"), /^name = "numbered"$/m);
  await assert.rejects(typed(["nothing", "agnet", "agnet"], { folder: join(folder, "none") }), /Did you mean agent\?/);
});

test("init takes flags without a terminal, and says which one is missing", async () => {
  const dir = join(folder, "flags");
  const made = await runBerth(["init", "--template", "agent-echo", "--name", "flagged", "--folder", dir], { env });
  assert.equal(made.code, 0, made.stderr);
  assert.ok(existsSync(join(dir, "index.js")));
  const lacking = await runBerth(["init", "--template", "agent-echo"], { env });
  assert.deepEqual([lacking.code, /no terminal to ask for the name/.test(lacking.stderr)], [2, true], lacking.stderr);
  await assert.rejects(
    typed([], { template: "agent-ecko", name: "x" }),
    /no template 'agent-ecko'\. Did you mean agent-echo\?/,
  );
  const wrong = await runBerth(["init", "--template", "agent-echo", "--name", "../out"], { env });
  assert.deepEqual([wrong.code, /is not a name/.test(wrong.stderr)], [2, true], wrong.stderr);
});

test("dev runs the code with the platform's variables, starts it again when it changes, and ends it", async () => {
  const dir = write("changing", {
    "index.js": answers("one"),
    "berth.toml": 'name = "changing"\n[env]\nPLAIN = "yes"\n',
  });
  {
    await using agent = await developing(dir, "-s", "HUSH=word");
    await agent.printed(/changing answers at/);
    const first = (await (await fetch(agent.url)).json()) as { word: string; env: Record<string, string> };
    assert.equal(first.word, "one");
    const { PLAIN, HUSH, BL_NAME, BL_WORKSPACE, BL_API_URL, BL_API_KEY, BERTH_API_KEY } = first.env;
    assert.deepEqual(
      { PLAIN, HUSH, BL_NAME, BL_WORKSPACE, BL_API_URL, BL_API_KEY, BERTH_API_KEY },
      {
        ...{ PLAIN: "yes", HUSH: "word", BL_NAME: "changing", BL_WORKSPACE: "main" },
        ...{ BL_API_URL: `${platform.url}/v0`, BL_API_KEY: TEST_KEY, BERTH_API_KEY: undefined },
      },
    );
    write("changing", { "node_modules/x/index.js": "", "index.js": answers("two") });
    await agent.printed(/(?:answers at[\s\S]*){2}begins with two/);
    await answersWith(agent.url, "two");
    write("changing", { "index.js": "process.exit(3)" });
    await agent.printed(/changing ended with code 3; it starts again when a file changes/);
    write("changing", { "index.js": answers("three") });
    await agent.printed(/(?:answers at[\s\S]*){3}begins with three/);
    assert.match(agent.stderr(), /^index\.js has changed: restarting$/m);
    assert.doesNotMatch(agent.stderr(), /node_modules.* has changed|ended by SIGTERM/);
  }
});

test("an agent that runs here asks a model of the platform", async () => {
  const page = readFileSync(join(import.meta.dirname, "../../../docs/kits.md"), "utf8");
  const input = /berth apply -f - <<'EOF'\n([\s\S]*?)EOF\n/.exec(page)?.[1] ?? "";
  const made = await runBerth(["apply", "-f", "-"], { env, input });
  assert.equal(made.code, 0, made.stderr);
  const dir = join(folder, "talks");
  await typed([], { template: "agent-chat", name: "talks", folder: dir });
  await using agent = await developing(dir);
  await agent.printed(/talks answers at/);
  const headers = { "x-service-thread-id": "t1" };
  const answer = await fetch(agent.url, { method: "POST", headers, body: JSON.stringify({ inputs: "hello" }) });
  assert.equal(answer.status, 200);
  assert.notEqual(await answer.text(), "");
});

test("a hostile server gets no control characters into a terminal", async () => {
  const template = { name: "a\u001b[2J", type: "agent\u001b]0;x\u0007", language: "js", description: "\u009b31m" };
  const hostile = { call: async () => [template] } as unknown as ReturnType<Context["connect"]>;
  const said: string[] = [];
  for (const lines of [
    ["1", "1", "../out"],
    ["x", "x", "x"],
  ])
    await assert.rejects(
      typed(lines, {}, () => hostile, said),
      (error: Error) => said.push(error.message, ...Object.values(error).map(String)) > 0,
    );
  assert.match(said.join("\n"), /is not a name[\s\S]*there is no type/);
  assert.doesNotMatch(JSON.stringify(said), /u001b|\u009b|u0007/);
});

test("an installation gets no credentials: packages run their own scripts then", async () => {
  const dir = write("installs", {
    "package.json": JSON.stringify({ main: "index.js", scripts: { build: "node save.js" } }),
    "save.js": 'require("node:fs").writeFileSync("seen.json", JSON.stringify(process.env))',
    "index.js": answers("built"),
    "berth.toml": 'name = "installs"\n',
  });
  await using agent = await developing(dir);
  await agent.printed(/installs answers at/);
  const seen = readFileSync(join(dir, "seen.json"), "utf8");
  assert.match(seen, /"BL_NAME":"installs"/);
  assert.ok(!seen.includes(TEST_KEY));
});

test("dev refuses what does not answer requests", async () => {
  const job = write("works", { "index.js": "", "berth.toml": 'type = "job"\n' });
  const refused = await runBerth(["dev", job], { env });
  assert.deepEqual([refused.code, /a job does not answer requests/.test(refused.stderr)], [2, true], refused.stderr);
  const stdio = write("pipes", { "index.js": "new StdioServerTransport()", "berth.toml": 'type = "function"\n' });
  assert.match((await runBerth(["dev", stdio], { env })).stderr, /uses standard input and output/);
});
