/** Tasks of MCP servers through the gateway: whoever began one asks for it, and nobody else. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import type { ToolRules } from "../../src/contract/tools/tool-rules.ts";
import type { Workload } from "../../src/gateway/deps.ts";
import { signedMessage, TaskIds } from "../../src/gateway/mcp/task-ids.ts";
import { dial, inBothLanes, listen, type Start, startTestGateway, type TestGateway, workload } from "./harness.ts";
import { connectKit, type KitClient, said, startKitServer } from "./mcp-servers.ts";

/** All sessions of the server share the tasks, as those of a server without accounts do. */
async function startTasks() {
  const taskStore = new InMemoryTaskStore();
  const register = (server: McpServer): void => {
    for (const name of ["dig", "drill"])
      server.experimental.tasks.registerToolTask(
        name,
        { description: name, execution: { taskSupport: "required" } },
        {
          async createTask(extra) {
            const task = await extra.taskStore.createTask({ ttl: 60_000 });
            if (name === "dig") await extra.taskStore.storeTaskResult(task.taskId, "completed", said("a hole"));
            return { task };
          },
          getTask: (extra) => extra.taskStore.getTask(extra.taskId),
          getTaskResult: async (extra) => (await extra.taskStore.getTaskResult(extra.taskId)) as never,
        },
      );
  };
  const capabilities = { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } };
  const server = await startKitServer("srv", register, { taskStore, capabilities });
  return {
    server,
    taskStore,
    async [Symbol.asyncDispose]() {
      taskStore.cleanup();
      await server[Symbol.asyncDispose]();
    },
  };
}

const EVERYBODY: ToolRules = { pins: null, access: [{ callers: ["*"], allow: ["*"] }] };

/** The function `srv` with rules, and `all` in front of it. Two callers may use both. */
function startBoth(start: Start, upstream: number, rules: { tools: ToolRules | null }): Promise<TestGateway> {
  const workloads: Record<string, () => Partial<Workload>> = {
    srv: () => ({ uid: "srv", ...(rules.tools && { tools: rules.tools }) }),
    all: () => ({ uid: "all", door: "platform", servers: [{ name: "srv", prefix: "a", allow: null }] }),
  };
  return start({
    upstream,
    workloads: [],
    deps: {
      authorize: () => true,
      dial: () => dial(upstream),
      resolve: (target) => {
        const made = target.by === "name" ? workloads[target.name]?.() : undefined;
        return made ? workload({ kind: "function", name: target.by === "name" ? target.name : "", ...made }) : null;
      },
    },
  });
}

async function begin({ client }: KitClient, name: string): Promise<string> {
  const stream = client.experimental.tasks.callToolStream({ name, arguments: {} }, CallToolResultSchema, {
    task: { ttl: 60_000 },
  });
  for await (const message of stream) if (message.type === "taskCreated") return message.task.taskId;
  throw new Error("no task was made");
}

for (const name of ["srv", "all"])
  inBothLanes(`${name}: a task is asked for, listed and cancelled by its caller alone`, async (start) => {
    await using tasks = await startTasks();
    const rules = { tools: EVERYBODY as ToolRules | null };
    await using gateway = await startBoth(start, tasks.server.port, rules);
    const prefix = name === "all" ? "a_" : "";
    await using mine = await connectKit(gateway, name, { capabilities: { tasks: {} } });
    await using theirs = await connectKit(gateway, name, { token: "foreign", capabilities: { tasks: {} } });
    const { getTask, getTaskResult, cancelTask, listTasks } = bound(mine);
    await mine.client.listTools();
    const [done, open] = [await begin(mine, `${prefix}dig`), await begin(mine, `${prefix}drill`)];
    assert.equal((await getTask(done)).status, "completed");
    assert.equal((await getTask(done)).taskId, done, "the id stays the same");
    assert.deepEqual((await getTaskResult(done, CallToolResultSchema)).content, said("a hole").content);
    assert.equal((await getTask(open)).status, "working");
    for (const ask of ["getTask", "getTaskResult", "cancelTask"] as const)
      await assert.rejects(bound(theirs)[ask](open), /There is no task/);
    const own = (await tasks.taskStore.listTasks()).tasks.map(({ taskId }) => taskId);
    assert.equal(own.length, 2);
    for (const id of own) await assert.rejects(getTask(id), /There is no task/, "an id of the server itself");
    assert.deepEqual((await listTasks()).tasks.map(({ taskId }) => taskId).sort(), [done, open].sort());
    assert.deepEqual((await bound(theirs).listTasks()).tasks, []);
    assert.equal((await cancelTask(open)).status, "cancelled");
    // The rules about tools hold for the tasks of a tool that was allowed before.
    rules.tools = { pins: null, access: [{ callers: ["*"], allow: ["drill"] }] };
    await assert.rejects(getTask(done), /There is no tool "dig"/);
    assert.equal((await getTask(open)).status, "cancelled");
  });

test("the list of a toolbox has tasks of all servers that list them, of the tools that it serves", async () => {
  await using tasks = await startTasks();
  await using plain = await startKitServer("plain", (server) => {
    server.registerTool("greet", { description: "greet" }, () => said("hello") as never);
  });
  const servers = [
    { name: "srv", prefix: "a", allow: null as string[] | null },
    { name: "plain", prefix: "b", allow: null },
  ];
  await using gateway = await startTestGateway({
    upstream: 0,
    workloads: [
      { kind: "function", uid: "srv", name: "srv" },
      { kind: "function", uid: "plain", name: "plain" },
      { kind: "function", uid: "all", name: "all", door: "platform", servers },
    ],
    deps: { dial: ({ key }) => dial(key.startsWith("srv") ? tasks.server.port : plain.port) },
  });
  await using mine = await connectKit(gateway, "all", { capabilities: { tasks: {} } });
  assert.deepEqual(mine.client.getServerCapabilities()?.tasks?.list, {});
  await mine.client.listTools();
  const [done, open] = [await begin(mine, "a_dig"), await begin(mine, "a_drill")];
  const listed = async () => (await bound(mine).listTasks()).tasks.map(({ taskId }) => taskId).sort();
  assert.deepEqual(await listed(), [done, open].sort());
  if (servers[0]) servers[0].allow = ["drill"];
  assert.deepEqual(await listed(), [open]);
});

/** The methods of a client as functions. */
const bound = ({ client: { experimental } }: KitClient) => ({
  getTask: (id: string) => experimental.tasks.getTask(id),
  getTaskResult: (id: string, schema?: typeof CallToolResultSchema) => experimental.tasks.getTaskResult(id, schema),
  cancelTask: (id: string) => experimental.tasks.cancelTask(id),
  listTasks: () => experimental.tasks.listTasks(),
});

const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } },
};

/** A server of the sessionless protocol, which tells tasks as the extension has them: flat, and found by a header. */
async function startFlat() {
  const heard: { method: string; taskId: unknown; name: string | string[] | undefined }[] = [];
  const http = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const { id, method, params } = JSON.parse(text);
    heard.push({ method, taskId: params.taskId, name: request.headers["mcp-name"] });
    const task = {
      taskId: "täsk 1",
      createdAt: "2026-01-01T00:00:00Z",
      lastUpdatedAt: "2026-01-01T00:00:00Z",
      ttlMs: 1,
    };
    const results: Record<string, object> = {
      "tools/call": { resultType: "task", ...task, status: "working" },
      "tasks/list": { tasks: [{ taskId: { toString: 0 } }, null, { taskId: "of nobody" }] },
      "tasks/get": { resultType: "complete", ...task, status: "completed", result: said("a hole") },
    };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result: results[method] ?? { resultType: "complete" } }));
  });
  return {
    port: await listen(http),
    heard,
    async [Symbol.asyncDispose]() {
      http.close();
      http.closeAllConnections();
    },
  };
}

for (const name of ["srv", "all"])
  test(`${name}: tasks of the sessionless protocol are the caller's too, in the body and in the header`, async () => {
    await using server = await startFlat();
    await using gateway = await startBoth(startTestGateway, server.port, { tools: EVERYBODY });
    const ask = async (method: string, params: object, named: string, token = "good") => {
      const answer = await fetch(`${gateway.url}/ws/functions/${name}/mcp`, {
        method: "POST",
        headers: {
          ...{ authorization: `Bearer ${token}`, "content-type": "application/json" },
          ...{ accept: "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28" },
          ...{ "mcp-method": method, "mcp-name": named },
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: META } }),
      });
      return (await answer.json()) as { result?: Record<string, unknown>; error?: { message: string } };
    };
    const tool = name === "all" ? "a_dig" : "dig";
    const { result } = await ask("tools/call", { name: tool, arguments: {} }, tool);
    const taskId = String(result?.taskId);
    assert.equal(result?.resultType, "task");
    const told = await ask("tasks/get", { taskId }, taskId);
    assert.deepEqual([told.result?.status, told.result?.taskId], ["completed", taskId]);
    assert.equal((await ask("tasks/update", { taskId, inputResponses: {} }, taskId)).result?.resultType, "complete");
    assert.equal((await ask("tasks/cancel", { taskId }, taskId)).result?.resultType, "complete");
    const asked = server.heard.slice(1);
    assert.deepEqual(
      asked.map(({ taskId: id, name: header }) => [id, header]),
      asked.map(() => ["täsk 1", `=?base64?${Buffer.from("täsk 1").toString("base64")}?=`]),
    );
    if (name === "srv") assert.deepEqual((await ask("tasks/list", {}, "")).result?.tasks, [], "ids of any shape");
    assert.match((await ask("tasks/get", { taskId }, taskId, "foreign")).error?.message ?? "", /There is no task/);
    assert.match((await ask("tasks/get", { taskId }, "another")).error?.message ?? "", /Mcp-Name/);
    assert.equal(server.heard.length, name === "srv" ? 5 : 4);
  });

const CALLER = { id: "u", type: "user", method: "api_key" } as const;

test("a signed id opens for its caller, function and key alone, and in no other spelling", () => {
  const ids = new TaskIds(Buffer.alloc(32, 1));
  const caller = CALLER;
  const signed = ids.of("f", caller).sign("t", "dig", "");
  assert.deepEqual(ids.of("f", caller).open(signed), { id: "t", tool: "dig", server: "" });
  assert.deepEqual(new TaskIds(Buffer.alloc(32, 1)).of("f", caller).open(signed).id, "t", "after a restart");
  for (const other of [
    ids.of("g", caller),
    ids.of("f", { ...caller, id: "v" }),
    ids.of("f", { ...caller, keyId: "k" }),
    ids.of("f", null),
    new TaskIds(Buffer.alloc(32, 2)).of("f", caller),
  ])
    assert.throws(() => other.open(signed), /There is no task/);
  for (const wrong of [
    "",
    "t",
    `${signed}A`,
    `x${signed}`,
    `${signed}.x`,
    signed.split(".")[0],
    7,
    null,
    "a.".repeat(9000),
  ])
    assert.throws(() => ids.of("f", caller).open(wrong), /There is no task/);
});

test("callers without credentials see no tasks in a list, and have those whose ids they were given", () => {
  const ids = new TaskIds(Buffer.alloc(32, 1));
  const signed = ids.of("f", null).sign("t", "dig", "");
  assert.equal(ids.of("f", null).open(signed).id, "t");
  const list = { jsonrpc: "2.0", id: 1, result: { tasks: [{ taskId: "t", status: "working" }] } };
  assert.deepEqual(signedMessage(list, ids.of("f", null), null).result.tasks, []);
});

test("a function that begins a great many tasks pushes out its own, and long names of tools are not kept", () => {
  const ids = new TaskIds(Buffer.alloc(32, 1));
  const [quiet, busy] = [ids.of("quiet", CALLER), ids.of("busy", CALLER)];
  const before = quiet.sign("t", "dig", "");
  for (let task = 0; task < 10_100; task += 1) busy.sign(`t${task}`, "dig", "");
  assert.ok(quiet.isKnown("t", ""));
  assert.equal(quiet.sign("t", null, ""), before, "its tool is known");
  assert.ok(busy.isKnown("t10099", ""));
  assert.ok(!busy.isKnown("t0", ""));
  assert.equal(busy.sign("mine", "x".repeat(1_000_000), ""), "mine");
  assert.ok(!busy.isKnown("mine", ""));
});
