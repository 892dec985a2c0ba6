import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Agent, fetch } from "undici";
import { skip, startSandboxd, type TestDaemon } from "../../../test/sandboxd-harness.ts";

const WITHOUT_KEY = [
  "processesList",
  "processExecute",
  "processGet",
  "processGetLogs",
  "processStop",
  "processKill",
  "fsGetWorkingDirectory",
  "fsListDirectory",
  "fsReadFile",
  "fsWriteFile",
  "fsEditFile",
  "fsDeleteFileOrDirectory",
  "codegenFileSearch",
  "codegenCodebaseSearch",
  "codegenGrepSearch",
  "codegenReadFileRange",
  "codegenListDir",
  "codegenReapply",
  "codegenParallelApply",
];

/** The official client, over the daemon's socket. */
async function connected(d: TestDaemon) {
  const dispatcher = new Agent({ connect: { socketPath: d.config.apiSocket } });
  const transport = new StreamableHTTPClientTransport(new URL("http://sandbox/mcp"), {
    fetch: ((url: string | URL, init: object) =>
      fetch(url, { ...init, dispatcher })) as unknown as typeof globalThis.fetch,
  });
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  return {
    client,
    [Symbol.asyncDispose]: async () => {
      await client.close();
      await dispatcher.close();
    },
  };
}

const rpc = (d: TestDaemon, method: string, params: unknown = {}, headers: Record<string, string> = {}) =>
  d.ask("POST", "/mcp", { body: { jsonrpc: "2.0", id: 1, method, params }, headers });

async function call(d: TestDaemon, name: string, args: unknown = {}) {
  const { json } = await rpc(d, "tools/call", { name, arguments: args });
  const { content, structuredContent, isError } = json.result;
  if (!isError) assert.deepEqual(JSON.parse(content[0].text), structuredContent);
  return { result: structuredContent, error: isError ? content[0].text : null };
}

test("the official client finds and uses the tools", { skip }, async () => {
  await using d = await startSandboxd();
  await using session = await connected(d);
  assert.equal(session.client.getServerVersion()?.name, "Sandbox API Server");
  const { tools } = await session.client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name).sort(), [...WITHOUT_KEY].sort());
  for (const tool of tools) {
    assert.equal(tool.inputSchema.type, "object");
    assert.ok(tool.description);
  }
  const answer = await session.client.callTool({
    name: "processExecute",
    arguments: { command: "echo $((6*7))", waitForCompletion: true },
  });
  const result = answer.structuredContent as { logs: string; status: string };
  assert.deepEqual([result.logs, result.status], ["42\n", "completed"]);
});

test("the protocol", { skip }, async (t) => {
  await using d = await startSandboxd();

  await t.test("old clients initialize, new ones discover", async () => {
    for (const [asked, given] of [
      ["2024-11-05", "2024-11-05"],
      ["2025-06-18", "2025-06-18"],
      ["1999-01-01", "2025-11-25"],
    ]) {
      const { json } = await rpc(d, "initialize", { protocolVersion: asked, capabilities: {}, clientInfo: {} });
      assert.equal(json.result.protocolVersion, given);
    }
    const meta = {
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
      },
    };
    const modern = (method: string, more: Record<string, string> = {}) =>
      rpc(d, method, meta, { "mcp-protocol-version": "2026-07-28", "mcp-method": method, ...more });
    const { json } = await modern("server/discover");
    assert.ok(json.result.supportedVersions.includes("2026-07-28"));
    assert.deepEqual([json.result.resultType, json.result.cacheScope], ["complete", "private"]);
    assert.equal((await modern("tools/list")).json.result.resultType, "complete");
    for (const more of [{ "mcp-method": "ping" }, { "mcp-protocol-version": "2025-11-25" }] as Record<
      string,
      string
    >[]) {
      const refused = await modern("tools/list", more);
      assert.deepEqual([refused.status, refused.json.error.code], [400, -32020]);
    }
    assert.equal((await rpc(d, "tools/list", meta)).json.error.code, -32020);
    const bare = await rpc(d, "tools/list", {}, { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list" });
    assert.deepEqual([bare.status, bare.json.error.code], [400, -32602]);
    assert.equal((await rpc(d, "tools/list")).json.result.resultType, undefined);
    const wrong = await rpc(d, "tools/list", {}, { "mcp-protocol-version": "1999-01-01" });
    assert.deepEqual([wrong.status, wrong.json.error.code], [400, -32022]);
  });

  await t.test("notifications are taken, GET is not", async () => {
    const note = await d.ask("POST", "/mcp", { body: { jsonrpc: "2.0", method: "notifications/initialized" } });
    assert.deepEqual([note.status, note.text], [202, ""]);
    assert.equal((await d.ask("GET", "/mcp")).status, 405);
    assert.equal((await d.ask("DELETE", "/mcp")).status, 405);
    assert.deepEqual((await rpc(d, "ping")).json.result, {});
  });

  await t.test("batches", async () => {
    const body = [
      { jsonrpc: "2.0", id: "a", method: "ping" },
      { jsonrpc: "2.0", method: "notifications/x" },
      { jsonrpc: "2.0", id: "b", method: "nope" },
    ];
    const { json } = await d.ask("POST", "/mcp", { body: JSON.stringify(body) });
    assert.deepEqual(
      json.map((one: { id: string }) => one.id),
      ["a", "b"],
    );
    assert.equal(json[1].error.code, -32601);
  });

  await t.test("mistakes", async () => {
    assert.equal((await d.ask("POST", "/mcp", { body: "{" })).json.error.code, -32700);
    assert.equal((await d.ask("POST", "/mcp", { body: "[]" })).status, 400);
    assert.equal((await d.ask("POST", "/mcp", { body: "5" })).json.error.code, -32600);
    assert.equal((await d.ask("POST", "/mcp", { body: { id: 1 } })).json.error.code, -32600);
    assert.equal((await rpc(d, "resources/list")).json.error.code, -32601);
    assert.equal((await rpc(d, "tools/call", { name: "none" })).json.error.code, -32602);
    assert.match((await call(d, "processExecute")).error, /"command" is required/);
    assert.match((await call(d, "processExecute", { command: 5 })).error, /type string/);
    assert.match((await call(d, "processGet", { identifier: "none" })).error, /no process/);
  });
});

test("tools for processes", { skip }, async () => {
  await using d = await startSandboxd();
  const started = (await call(d, "processExecute", { command: "sleep 100", name: "s" })).result;
  assert.deepEqual([started.status, started.name, started.logs], ["running", "s", undefined]);
  const late = (
    await call(d, "processExecute", { command: "echo x; sleep 100", name: "late", waitForCompletion: true, timeout: 2 })
  ).result;
  assert.deepEqual([late.pollRequired, late.status, late.logs], [true, "running", "x\n"]);
  const { processes } = (await call(d, "processesList")).result;
  assert.deepEqual(
    processes.map((one: { name: string }) => one.name),
    ["s", "late"],
  );
  assert.equal((await call(d, "processGet", { identifier: "late" })).result.stdout, "x\n");
  assert.deepEqual((await call(d, "processGetLogs", { identifier: "late" })).result, {
    logs: "x\n",
    stdout: "x\n",
    stderr: "",
  });
  assert.equal((await call(d, "processStop", { identifier: "s" })).result.success, true);
  assert.equal((await call(d, "processKill", { identifier: "late" })).result.success, true);
  const here = (await call(d, "processExecute", { command: "pwd", waitForCompletion: true })).result;
  assert.equal(here.logs, "/\n");
});

test("tools for files", { skip }, async () => {
  await using d = await startSandboxd();
  assert.equal((await call(d, "fsGetWorkingDirectory")).result.path, d.workDir);
  await call(d, "fsWriteFile", { path: "sub/a.txt", content: "one two two", permissions: "0600" });
  assert.equal((await call(d, "fsReadFile", { path: "sub/a.txt" })).result.content, "one two two");
  assert.equal((await call(d, "fsReadFile", { path: join(d.workDir, "sub/a.txt") })).result.permissions, "0600");
  assert.match(
    (await call(d, "fsEditFile", { path: "sub/a.txt", oldString: "two", newString: "2" })).error,
    /occurs 2 times/,
  );
  assert.match(
    (await call(d, "fsEditFile", { path: "sub/a.txt", oldString: "three", newString: "3" })).error,
    /does not occur/,
  );
  assert.match((await call(d, "fsEditFile", { path: "sub/a.txt", oldString: "", newString: "3" })).error, /empty/);
  assert.match(
    (await call(d, "fsEditFile", { path: "sub/a.txt", oldString: "one", newString: "one" })).error,
    /differ/,
  );
  assert.equal(
    (await call(d, "fsEditFile", { path: "sub/a.txt", oldString: "one", newString: "$&1" })).result.occurrencesReplaced,
    1,
  );
  assert.equal(
    (await call(d, "fsEditFile", { path: "sub/a.txt", oldString: "two", newString: "2", replaceAll: true })).result
      .occurrencesReplaced,
    2,
  );
  assert.equal(readFileSync(join(d.workDir, "sub/a.txt"), "utf8"), "$&1 2 2");
  await call(d, "fsWriteFile", { path: "dir", isDirectory: true });
  const { subdirectories } = (await call(d, "fsListDirectory", { path: "." })).result;
  assert.deepEqual(
    subdirectories.map((one: { name: string }) => one.name),
    ["dir", "sub"],
  );
  assert.match((await call(d, "fsDeleteFileOrDirectory", { path: "sub" })).error, /not empty/);
  await call(d, "fsDeleteFileOrDirectory", { path: "sub", recursive: true });
  assert.match((await call(d, "fsReadFile", { path: "sub/a.txt" })).error, /no such file/);
  assert.match((await call(d, "fsReadFile", { path: "/dev/zero" })).error, /not a regular file/);
});

test("tools for code", { skip }, async (t) => {
  await using d = await startSandboxd();
  mkdirSync(join(d.workDir, "src"));
  writeFileSync(join(d.workDir, "src/order-total.ts"), "export function orderTotal() {\n  return taxes + price;\n}\n");
  writeFileSync(join(d.workDir, "src/other.js"), "nothing about it\n");
  writeFileSync(join(d.workDir, "long.txt"), Array.from({ length: 400 }, (_, i) => `line ${i + 1}`).join("\n"));

  await t.test("search by path, by words and by expression", async () => {
    assert.equal(
      (await call(d, "codegenFileSearch", { query: "ordtot" })).result.matches[0].path,
      "src/order-total.ts",
    );
    const [best] = (await call(d, "codegenCodebaseSearch", { query: "where are taxes added to the price" })).result
      .results;
    assert.deepEqual([best.path, best.line], ["src/order-total.ts", 2]);
    const grep = await call(d, "codegenGrepSearch", { query: "tax(es)?\\s+\\+", includePattern: "*.ts" });
    assert.deepEqual(grep.result, { results: "src/order-total.ts:2:  return taxes + price;\n", total: 1 });
    assert.equal((await call(d, "codegenGrepSearch", { query: "TAXES", caseSensitive: true })).result.total, 0);
    assert.equal((await call(d, "codegenGrepSearch", { query: "taxes", excludePattern: "*.ts" })).result.total, 0);
    assert.match((await call(d, "codegenGrepSearch", { query: "(" })).error, /expression/i);
  });

  await t.test("ranges of lines", async () => {
    const range = { targetFile: "long.txt", startLineOneIndexed: 10, endLineOneIndexedInclusive: 12 };
    assert.equal((await call(d, "codegenReadFileRange", range)).result.content, "line 10\nline 11\nline 12");
    assert.match((await call(d, "codegenReadFileRange", { ...range, endLineOneIndexedInclusive: 400 })).error, /250/);
    assert.match((await call(d, "codegenReadFileRange", { ...range, startLineOneIndexed: 0 })).error, /begin at 1/);
    assert.equal((await call(d, "codegenListDir", { relativeWorkspacePath: "src" })).result.files.length, 2);
  });

  await t.test("a hostile expression does not stop the daemon", async () => {
    writeFileSync(join(d.workDir, "evil.txt"), `${"a".repeat(1900)}!`);
    const hanging = d.open("POST", "/mcp", {
      body: {
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "codegenGrepSearch", arguments: { query: "^(a|a)*$" } },
      },
    });
    assert.equal((await d.ask("GET", "/health")).status, 200);
    assert.ok(hanging);
    hanging.catch(() => {});
  });

  await t.test("edits need a model", async () => {
    assert.match((await call(d, "codegenReapply", { targetFile: "long.txt" })).error, /no edit/);
    const plan = { editPlan: "x", editRegions: [{ relativeWorkspacePath: "long.txt" }] };
    assert.match((await call(d, "codegenParallelApply", plan)).error, /No code model/);
  });
});
