/** Every template runs as it stands: as a process of its own, where HOST and PORT say. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { globSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { conformance, REVISIONS } from "./mcp/conformance.ts";
import { assertConforms, EXPECTED } from "./mcp/expectations.ts";
import { connectModern } from "./mcp-suite.ts";

const TEMPLATES = globSync("examples/*/template.json").map((file) => dirname(file));
const PYTHON = spawnSync("python3", ["--version"]).status === 0;
const NO_PYTHON = "python3 is not installed; install it to run this test";

interface Started extends AsyncDisposable {
  url: string;
}

async function start(name: string, command: string[], env: Record<string, string> = {}): Promise<Started> {
  const [program = "", ...args] = command;
  const child = spawn(program, args, {
    cwd: join("examples", name),
    env: { PATH: process.env.PATH ?? "", PYTHONDONTWRITEBYTECODE: "1", HOST: "127.0.0.1", PORT: "0", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await listening(child);
  return {
    url,
    async [Symbol.asyncDispose]() {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      const [code] = await ended;
      assert.equal(code, 0, "it stops when it is asked to");
    },
  };
}

async function listening(child: ChildProcess): Promise<string> {
  let said = "";
  for await (const text of child.stdout ?? []) {
    said += text;
    const url = /listening on (http:\S+)/.exec(said)?.[1];
    if (url) return url;
  }
  throw new Error(`it did not start: ${said}`);
}

async function serve(handle: RequestListener): Promise<Started> {
  const server = createServer(handle).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const post = (url: string, body: string) => fetch(url, { method: "POST", body });

test("there are templates for every kind of workload", () => {
  assert.ok(TEMPLATES.length >= 6);
});

test("agent-echo answers what it was asked", async () => {
  await using agent = await start("agent-echo", [process.execPath, "index.js"]);
  const answer = await post(agent.url, JSON.stringify({ inputs: "hello" }));
  assert.deepEqual(await answer.json(), { output: "You said: hello" });
  assert.equal((await post(agent.url, "not json")).status, 400);
});

test("agent-chat streams a model's answer", async () => {
  const asked: { path: string; key: string; contents: string[] }[] = [];
  await using models = await serve(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const { messages } = JSON.parse(text) as { messages: { content: string }[] };
    asked.push({
      path: request.url ?? "",
      key: String(request.headers["x-service-authorization"]),
      contents: messages.map(({ content }) => content),
    });
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const content of ["Good ", "day"])
      response.write(`data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`);
    response.end("data: [DONE]\n\n");
  });
  await using agent = await start("agent-chat", [process.execPath, "index.js"], {
    BL_RUN_URL: models.url,
    BL_WORKSPACE: "main",
    BL_API_KEY: "key",
    MODEL: "small",
  });
  assert.equal(await (await post(agent.url, JSON.stringify({ inputs: "first" }))).text(), "Good day");
  assert.equal(asked[0]?.path, "/main/models/small/chat/completions");
  assert.equal(asked[0]?.key, "Bearer key");
  assert.deepEqual(asked[0]?.contents.slice(1), ["first"]);
});

test("agent-chat says what went wrong at the model", async () => {
  await using models = await serve((_request, response) => response.writeHead(404).end("no such model"));
  await using agent = await start("agent-chat", [process.execPath, "index.js"], { BL_RUN_URL: models.url });
  const answer = await post(agent.url, JSON.stringify({ inputs: "hello" }));
  assert.equal(answer.status, 502);
  assert.match(await answer.text(), /answered 404: no such model/);
});

test("mcp-hello speaks to the official client", async () => {
  await using server = await start("mcp-hello", [process.execPath, "index.js"]);
  const client = new Client({ name: "test", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`)));
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map((tool) => tool.name),
    ["greet", "add"],
  );
  const greeted = await client.callTool({ name: "greet", arguments: { name: "Ada" } });
  assert.deepEqual(greeted.content, [{ type: "text", text: "Hello, Ada!" }]);
  const wrong = await client.callTool({ name: "add", arguments: { a: "1", b: 2 } });
  assert.equal(wrong.isError, true);
  await assert.rejects(client.callTool({ name: "nothing", arguments: {} }), /no tool/);
  await client.close();
  await using modern = await connectModern(new URL(`${server.url}/mcp`));
  assert.equal(await modern.say("greet", { name: "Ada" }), "Hello, Ada!");
});

for (const revision of REVISIONS)
  test(`mcp-hello conforms with ${revision}`, async () => {
    await using server = await start("mcp-hello", [process.execPath, "index.js"]);
    assertConforms(await conformance(`${server.url}/mcp`, revision), EXPECTED.toolsOnly[revision]);
  });

test("mcp-stdio speaks to the official client", async () => {
  const client = new Client({ name: "test", version: "1" });
  const cwd = join("examples", "mcp-stdio");
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: ["index.js"], cwd, stderr: "ignore" }),
  );
  const say = async (name: string, args: Record<string, unknown>) =>
    (await client.callTool({ name, arguments: args })) as { content: { text: string }[]; isError?: boolean };
  assert.equal((await say("remember", { note: "milk" })).content[0]?.text, "1 kept.");
  assert.equal((await say("recall", {})).content[0]?.text, "milk");
  assert.equal((await say("remember", {})).isError, true);
  await assert.rejects(say("nothing", {}), /no tool/);
  await client.close();
});

test("job-batch takes its task from the execution, or from the command line", async () => {
  await using data = await serve((_request, response) =>
    response.end(JSON.stringify({ tasks: [{ text: "a" }, { text: "one two three" }, {}] })),
  );
  const run = async (env: Record<string, string>, args: string[] = []) => {
    const child = spawn(process.execPath, ["index.js", ...args], {
      cwd: "examples/job-batch",
      env,
      stdio: ["ignore", "pipe", "ignore"],
    });
    const exited = once(child, "exit");
    let output = "";
    for await (const text of child.stdout) output += text;
    const [code] = await exited;
    return { code, output };
  };
  const second = await run({ BL_EXECUTION_DATA_URL: data.url, TASK_INDEX: "1" });
  assert.equal(second.code, 0);
  assert.equal(JSON.parse(second.output).words, 3);
  const named = await run({ BL_EXECUTION_DATA_URL: data.url, BL_TASK_KEY: "MY_INDEX", MY_INDEX: "0" });
  assert.equal(JSON.parse(named.output).words, 1);
  assert.equal((await run({ BL_EXECUTION_DATA_URL: data.url, TASK_INDEX: "2" })).code, 1);
  assert.equal(JSON.parse((await run({}, ["--text", "by hand"])).output).words, 2);
});

test("python-agent answers at once or as a stream", { skip: PYTHON ? false : NO_PYTHON }, async () => {
  await using agent = await start("python-agent", ["python3", "main.py"]);
  const answer = await post(agent.url, JSON.stringify({ inputs: "hello there" }));
  assert.deepEqual(await answer.json(), { output: "You wrote 2 words: hello there" });
  const stream = await post(`${agent.url}/?stream=true`, JSON.stringify({ inputs: "hi" }));
  assert.equal(stream.headers.get("content-type"), "text/event-stream");
  assert.match(await stream.text(), /data: "You"\n\n[\s\S]*data: \[DONE\]/);
  assert.equal((await post(agent.url, "[]")).status, 400);
});

test("app-web serves its page and its API", async () => {
  await using app = await start("app-web", [process.execPath, "index.js"], { GREETING: "Ahoy" });
  assert.match(await (await fetch(app.url)).text(), /<h1 id="greeting">/);
  assert.equal(((await (await fetch(`${app.url}/api/status`)).json()) as { greeting: string }).greeting, "Ahoy");
  assert.equal((await fetch(`${app.url}/else`)).status, 404);
});

test("sandbox-quickstart says what it needs", () => {
  const run = spawnSync(process.execPath, ["index.js"], { cwd: "examples/sandbox-quickstart", env: {} });
  assert.equal(run.status, 2);
  assert.match(run.stderr.toString(), /BL_API_KEY/);
});
