/** Edge processes and their server's end: an upgrade keeps idle connections, and a kill loses and repeats no usage. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { freePort } from "../free-port.ts";
import { caller, startTestPlatform, TEST_KEY } from "../platform.ts";
import { eventually } from "../sandboxd-harness.ts";
import { startServer } from "../server-process.ts";

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "berth-edges-"));
  t.after(() => rmSync(dir, { recursive: true, force: true, maxRetries: 10 }));
  return dir;
}

async function healthy(socket: Socket): Promise<void> {
  socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const [answer] = (await once(socket, "data")) as [Buffer];
  assert.match(answer.toString(), /^HTTP\/1\.1 200 /);
}

const childrenOf = (pid: number | undefined): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").map(Number).filter(Boolean);

const edgesOf = (pid: number | undefined): number[] =>
  childrenOf(pid).filter((child) => readFileSync(`/proc/${child}/cmdline`, "utf8").includes("bin/edge.js"));

function isAlive(pid: number): boolean {
  try {
    return /^State:\s+[^ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

suite("edge processes and the end of their server", () => {
  test("idle connections of edge processes go to the next server, and new ones wait for it", async (t) => {
    const dataDir = folder(t);
    const config = { edge_processes: "2" };
    const first = await startTestPlatform({ dataDir, config });
    const { hostname, port } = new URL(first.url);
    const open = async (): Promise<Socket> => {
      const socket = connect(Number(port), hostname);
      t.after(() => socket.destroy());
      await once(socket, "connect");
      return socket;
    };
    const idle = await Promise.all(Array.from({ length: 6 }, open));
    for (const socket of idle) await healthy(socket);
    const held = first.app.port.hold(10_000);
    await first.stop();
    const late = await open();
    await using second = await startTestPlatform({ dataDir, config, port: held });
    for (const socket of [...idle, late]) await healthy(socket);
    assert.equal(second.app.edgePids().length, 2);
  });

  test("a killed server loses and repeats no usage that went through its edge processes", async (t) => {
    const dataDir = folder(t);
    const env = { BERTH_EDGE_PROCESSES: "2", PORT: String(await freePort()) };
    const first = await startServer({ dataDir, env });
    t.after(() => first.kill("SIGKILL"));
    const call = caller(first.url);
    const spec = { runtime: { type: "mock", model: "echo" }, prices: { input: "1000", output: "2000" } };
    assert.equal((await call("POST", "/models", { body: { metadata: { name: "echo" }, spec } })).status, 200);
    const ask = async (): Promise<{ prompt_tokens: number; completion_tokens: number }> => {
      const answer = await fetch(`${first.url}/main/models/echo/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${TEST_KEY}`, "content-type": "application/json" },
        body: JSON.stringify({ messages: [{ role: "user", content: "one two three" }] }),
      });
      assert.equal(answer.status, 200);
      return ((await answer.json()) as { usage: { prompt_tokens: number; completion_tokens: number } }).usage;
    };
    const told = await Promise.all(Array.from({ length: 20 }, ask));
    const edges = edgesOf(first.child.pid);
    assert.equal(edges.length, 2);
    await first.kill("SIGKILL");
    await eventually(async () => edges.every((pid) => !isAlive(pid)), "edge processes end with their owner");

    const second = await startServer({ dataDir, env });
    t.after(() => second.kill("SIGKILL"));
    const sum = (key: "prompt_tokens" | "completion_tokens"): number => told.reduce((all, one) => all + one[key], 0);
    const summary = async () => (await caller(second.url)("GET", "/usage/models", { workspace: "main" })).body.summary;
    await eventually(async () => (await summary()).requests >= told.length, "all requests are in the ledger");
    const { requests, inputTokens, outputTokens } = await summary();
    assert.deepEqual(
      [requests, inputTokens, outputTokens],
      [told.length, sum("prompt_tokens"), sum("completion_tokens")],
    );

    const later = edgesOf(second.child.pid);
    await second.kill("SIGTERM");
    assert.deepEqual(later.map(isAlive), [false, false], "a stop ends them first");
  });
});
