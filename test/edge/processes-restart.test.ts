/** Edge processes and their server's end: an upgrade keeps idle connections, and a kill loses and repeats no usage. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { leaveWish, wishFor } from "../../src/lib/process-note.ts";
import { END_WORKLOADS } from "../../src/operator/down.ts";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";
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

  test("new edge processes take the place of old ones, and no connection is dropped", async (t) => {
    const waiting: ServerResponse[] = [];
    const app = createServer((req, res) => (req.url === "/hold" ? void waiting.push(res) : res.end("answered")));
    app.on("upgrade", (_req, socket: Socket) => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
      socket.pipe(socket);
      socket.on("error", () => socket.destroy());
    });
    t.after(() => app.close().closeAllConnections());
    app.listen(0, "127.0.0.1");
    await once(app, "listening");
    const appPort = (app.address() as AddressInfo).port;
    const machine = new FakeMachine({ images: ["service/base-image:latest"], portOf: () => appPort });
    t.after(() => machine.dispose());
    await using platform = await startTestPlatform({ driver: fakeDriver(machine), config: { edge_processes: "2" } });
    const made = await platform.call("POST", "/sandboxes", { body: { metadata: { name: "box" }, spec: {} } });
    assert.equal(made.status, 200);
    const { hostname, port } = new URL(platform.url);
    const send = (path: string, more = ""): Socket => {
      const socket = connect(Number(port), hostname);
      t.after(() => socket.destroy());
      socket.write(headOf(path, more));
      return socket;
    };
    const headOf = (path: string, more = ""): string =>
      `GET /main/sandboxes/box/port/3000${path} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${platform.apiKey}\r\n${more}\r\n`;
    const heard = async (socket: Socket): Promise<string> => String((await once(socket, "data"))[0]);

    const idle = Array.from({ length: 8 }, () => send("/x"));
    for (const text of await Promise.all(idle.map(heard))) assert.match(text, /^HTTP\/1\.1 200 /);
    const sockets = Array.from({ length: 4 }, () => send("/ws", "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
    for (const text of await Promise.all(sockets.map(heard))) assert.match(text, /^HTTP\/1\.1 101 /);
    const held = send("/hold");
    await eventually(async () => waiting.length === 1, "a request is open");
    const before = platform.app.edgePids();

    let [isOver, asked] = [false, 0];
    const load = async (): Promise<void> => {
      while (!isOver) {
        const socket = send("/x", "Connection: close\r\n");
        assert.match(await heard(socket), /^HTTP\/1\.1 200 /);
        asked += 1;
        socket.destroy();
      }
    };
    const loads = [load(), load()];
    await platform.app.restartEdges();
    isOver = true;
    await Promise.all(loads);
    assert.ok(asked > 0);
    const now = platform.app.edgePids();
    assert.deepEqual([now.length, now.some((pid) => before.includes(pid))], [2, false]);
    assert.match(await (await fetch(`${platform.url}/readyz`)).text(), /"ready"/);
    for (const socket of idle) {
      socket.write(headOf("/x"));
      const answer = await heard(socket);
      assert.match(answer, /^HTTP\/1\.1 200 [\s\S]*connection: close/i, "it ends with an answer, not before");
    }
    waiting[0]?.end("late");
    assert.match(await heard(held), /^HTTP\/1\.1 200 /);
    for (const socket of sockets) {
      socket.write("echo");
      assert.equal(await heard(socket), "echo");
    }
    // What is revoked is over for the connections of an old process too.
    assert.ok(before.every(isAlive), "the WebSockets keep both");
    for (const socket of [...sockets, held]) socket.destroy();
    await eventually(async () => !before.some(isAlive), "old processes end with their last connection");
    assert.equal(platform.app.edgePids().length, 2, "and are not replaced");
  });

  test("each answered request is billed once when an edge process and then the server are killed under load", async (t) => {
    const dataDir = folder(t);
    const env = { BERTH_EDGE_PROCESSES: "2", PORT: String(await freePort()) };
    const first = await startServer({ dataDir, env });
    t.after(() => first.kill("SIGKILL"));
    const call = caller(first.url);
    const spec = { runtime: { type: "mock", model: "echo" }, prices: { input: "1000", output: "2000" } };
    assert.equal((await call("POST", "/models", { body: { metadata: { name: "echo" }, spec } })).status, 200);
    /** What whole answers said: by the id of the request, its tokens. */
    const told = new Map<string, string>();
    let asked = 0;
    const ask = async (): Promise<void> => {
      asked += 1;
      const answer = await fetch(`${first.url}/main/models/echo/v1/chat/completions`, {
        method: "POST",
        // On a connection of its own, so that any process may get it.
        headers: { authorization: `Bearer ${TEST_KEY}`, "content-type": "application/json", connection: "close" },
        // Each request has a number of tokens of its own.
        body: JSON.stringify({ messages: [{ role: "user", content: "word ".repeat(asked) }] }),
      });
      assert.equal(answer.status, 200);
      const { usage } = (await answer.json()) as { usage: { prompt_tokens: number; completion_tokens: number } };
      told.set(answer.headers.get("x-request-id") ?? "", `${usage.prompt_tokens} ${usage.completion_tokens}`);
    };
    await Promise.all(Array.from({ length: 20 }, ask));
    const started = edgesOf(first.child.pid);
    const berth = join(import.meta.dirname, "../../bin/berth.js");
    const { pid = 0 } = first.child;
    leaveWish(dataDir, pid, END_WORKLOADS);
    const restart = await promisify(execFile)(process.execPath, [berth, "restart-edges", "--data", dataDir]);
    assert.match(restart.stdout + restart.stderr, /has new edge processes/);
    assert.equal(wishFor(dataDir, pid), END_WORKLOADS, "what `berth down` asked for is not forgotten");
    await eventually(async () => !started.some(isAlive), "old processes without connections end");
    await eventually(async () => edgesOf(first.child.pid).length === 2, "two processes");
    const edges = edgesOf(first.child.pid);

    let isOver = false;
    const load = async (): Promise<void> => {
      while (!isOver) await ask().catch(() => {}); // cut off by a kill
    };
    const answeredMore = (): Promise<void> => {
      const before = told.size;
      return eventually(async () => told.size >= before + 20, "requests are answered");
    };
    const loads = Array.from({ length: 4 }, load);
    await answeredMore();
    process.kill(edges[0] ?? assert.fail(), "SIGKILL");
    await answeredMore();
    await first.kill("SIGKILL");
    isOver = true;
    await Promise.all(loads);
    await eventually(async () => edges.every((pid) => !isAlive(pid)), "edge processes end with their owner");

    const second = await startServer({ dataDir, env });
    t.after(() => second.kill("SIGKILL"));
    const billed = async (): Promise<Map<string, string>> => {
      const [call, entries] = [caller(second.url), new Map<string, string>()];
      for (let cursor = ""; ; ) {
        const page = (await call("GET", `/models/echo/requests?limit=100&cursor=${cursor}`)).body;
        for (const { id, inputTokens, outputTokens } of page.data) {
          assert.ok(!entries.has(id), `${id} is billed twice`);
          entries.set(id, `${inputTokens} ${outputTokens}`);
        }
        if (!page.meta.hasMore) return entries;
        cursor = page.meta.nextCursor;
      }
    };
    await eventually(async () => {
      const entries = await billed();
      return [...told.keys()].every((id) => entries.has(id));
    }, "all answered requests are in the ledger");
    const entries = await billed();
    for (const [id, tokens] of told) assert.equal(entries.get(id), tokens, id);
    // A request that a kill cut off is billed when the model had answered it, and never twice under another id.
    assert.equal(new Set(entries.values()).size, entries.size);
    assert.ok(entries.size <= asked);
    const { requests } = (await caller(second.url)("GET", "/usage/models", { workspace: "main" })).body.summary;
    assert.equal(requests, entries.size);

    const later = edgesOf(second.child.pid);
    await second.kill("SIGTERM");
    assert.deepEqual(later.map(isAlive), [false, false], "a stop ends them first");
  });
});
