/**
 * Every template, taken with `berth new`, deployed with `berth deploy` and used through the gateway of an installation:
 * with its threads, its model and its sandbox.
 */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { promisify } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { eventually } from "../sandboxd-harness.ts";
import { commandOf, folderOf } from "./command.ts";
import { installation, strangersEnv } from "./installation.ts";
import { workloadsSkip } from "./isolation.ts";
import { apiOf } from "./suite.ts";

const WORKSPACE = "examples";
/** The base image has the machine's own programs. */
const noPython =
  spawnSync("/usr/bin/python3", ["--version"]).status !== 0 && "there is no /usr/bin/python3; install it";

const installed = await installation();
const { url, apiKey, root } = installed;
const { call, make } = apiOf(installed, WORKSPACE);
const berth = commandOf(installed);
const used = new Set<string>();

/** `berth new` and `berth deploy`, as the README tells. */
async function deploy(template: string): Promise<void> {
  used.add(template);
  const folder = folderOf(installed, template);
  for (const args of [
    ["new", template, folder],
    ["deploy", folder],
  ]) {
    const ended = await berth(args, { workspace: WORKSPACE });
    assert.equal(ended.code, 0, `berth ${args.join(" ")}: ${ended.stdout}${ended.stderr}`);
  }
}

const ask = async (path: string, body?: unknown, headers: Record<string, string> = {}) => {
  const answer = await fetch(`${url}/${WORKSPACE}/${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, text: await answer.text() };
};

async function connect(name: string): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  const address = new URL(`${url}/${WORKSPACE}/functions/${name}/mcp`);
  await client.connect(
    new StreamableHTTPClientTransport(address, { requestInit: { headers: { authorization: `Bearer ${apiKey}` } } }),
  );
  return client;
}

const said = async (client: Client, name: string, args: Record<string, unknown>): Promise<string> => {
  const { content } = (await client.callTool({ name, arguments: args })) as { content: { text: string }[] };
  return content[0]?.text ?? "";
};

describe("every template runs in an installation", { skip: workloadsSkip }, () => {
  before(async () => {
    const answer = await call("POST", "/workspaces", { body: { name: WORKSPACE } });
    assert.ok([200, 409].includes(answer.status), JSON.stringify(answer.body));
  });

  test("agent-echo answers what it was asked", async () => {
    await deploy("agent-echo");
    const { status, text } = await ask("agents/agent-echo", { inputs: "hello" });
    assert.deepEqual([status, text], [200, '{"output":"You said: hello"}']);
  });

  test("agent-chat asks a model and remembers the thread", async () => {
    await make("/models", "chat", { runtime: { type: "mock" } });
    await deploy("agent-chat");
    const thread = { "x-service-thread-id": "t1" };
    for (const inputs of ["My name is Ada.", "What is my name?"]) {
      const { status, text } = await ask("agents/agent-chat", { inputs }, thread);
      assert.equal(status, 200, text);
      assert.ok(text.length > 0);
    }
    const { body } = await call("GET", "/agents/agent-chat/threads/t1");
    const asked = body.messages.filter(({ role }: { role: string }) => role === "user");
    assert.deepEqual(
      asked.map(({ content }: { content: string }) => content),
      ["My name is Ada.", "What is my name?"],
    );
    assert.equal((await ask("agents/agent-chat", { inputs: "And alone?" })).status, 200);
  });

  test("python-agent counts the turns of a thread", { skip: noPython }, async () => {
    await deploy("python-agent");
    const thread = { "x-service-thread-id": "t1" };
    const first = await ask("agents/python-agent", { inputs: "hello there" }, thread);
    assert.match(first.text, /You wrote 2 words: hello there/);
    const second = await ask("agents/python-agent", { inputs: "again" }, thread);
    assert.equal(second.status, 200, second.text);
    assert.notEqual((await call("GET", "/agents/python-agent/threads/t1")).body.messageCount, 0);
  });

  test("app-web serves its page and its API to everybody", async () => {
    await deploy("app-web");
    const page = await fetch(`${url}/${WORKSPACE}/applications/app-web`);
    assert.match(await page.text(), /<h1 id="greeting">/);
    assert.equal((await ask("applications/app-web/api/status")).status, 200);
  });

  test("mcp-hello and mcp-stdio speak to the official client", async () => {
    await Promise.all([deploy("mcp-hello"), deploy("mcp-stdio")]);
    const hello = await connect("mcp-hello");
    assert.equal(await said(hello, "greet", { name: "Ada" }), "Hello, Ada!");
    await hello.close();
    const notes = await connect("mcp-stdio");
    await said(notes, "remember", { note: "milk" });
    assert.equal(await said(notes, "recall", {}), "milk");
    await notes.close();
  });

  test("job-batch runs a task for each text", async () => {
    await deploy("job-batch");
    const { body } = await call("POST", "/jobs/job-batch/executions", {
      body: { tasks: [{ text: "one" }, { text: "one two three" }] },
    });
    const execution = `/jobs/job-batch/executions/${body.id}`;
    await eventually(async () => (await call("GET", execution)).body.status === "succeeded", "the tasks to succeed");
    await eventually(async () => {
      const { stdout } = await berth(["logs", "job/job-batch"], { workspace: WORKSPACE });
      return /"words": ?3/.test(stdout);
    }, "the words in the log");
  });

  test("sandbox-quickstart makes a sandbox, uses it and leaves nothing behind", async () => {
    used.add("sandbox-quickstart");
    const { stdout } = await promisify(execFile)("node", ["index.js"], {
      cwd: join(root, "examples/sandbox-quickstart"),
      env: strangersEnv({ home: installed.home, BL_API_URL: `${url}/v0`, BL_API_KEY: apiKey, BL_WORKSPACE: WORKSPACE }),
    });
    assert.match(stdout, /the command said: hello from Linux\nthe file holds: remember me\ndeleted/);
    assert.deepEqual((await call("GET", "/sandboxes")).body.data, []);
  });

  test("none is left out", () => {
    const own = readdirSync(join(root, "examples")).filter((name) => !name.startsWith("kit-")); // test/kits has the kits
    if (!noPython) assert.deepEqual([...used].sort(), own.sort());
  });
});
