/** Edge processes: the same server on several processes. What they remember is never older than the answer to a change. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { openMaxOf } from "../../src/gateway/limits.ts";
import { sharesOf } from "../../src/gateway/open-exchanges.ts";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";
import { basic, machineToken } from "../identity/machine.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { until } from "../triggers/agent-world.ts";

const PROCESSES = 2;
/** At most this many requests of one caller are open at a time, in a workspace that may have twice as many. */
const CALLER_MAX = 32;

suite("edge processes", () => {
  /** Requests to /hold wait here. */
  const waiting: ServerResponse[] = [];
  const app = createServer((req, res) => {
    if (req.url === "/hold") return void waiting.push(res);
    res.end(`${req.method} ${req.url} for ${req.headers["x-forwarded-for"]}`);
  });
  // A WebSocket server as far as this test needs one: it echoes bytes.
  app.on("upgrade", (_req, socket: Socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    socket.pipe(socket);
    socket.on("error", () => socket.destroy());
  });
  let appPort = 0;
  const machine = new FakeMachine({ images: ["service/base-image:latest"], portOf: () => appPort });
  let platform: TestPlatform;

  before(async () => {
    app.listen(0, "127.0.0.1");
    await once(app, "listening");
    appPort = (app.address() as AddressInfo).port;
    const config = { edge_processes: String(PROCESSES), open_requests: String(2 * CALLER_MAX) };
    platform = await startTestPlatform({ driver: fakeDriver(machine), config });
    await made("/sandboxes", { metadata: { name: "box" }, spec: {} });
  });
  after(async () => {
    await platform?.stop();
    await machine.dispose();
    app.closeAllConnections();
    app.close();
  });

  const made = async (path: string, body: object, method = "POST") => {
    const answer = await platform.call(method, path, { body });
    assert.ok(answer.status < 300, JSON.stringify(answer.body));
    return answer.body;
  };
  const PAGE = "/main/sandboxes/box/port/3000";
  /** A request on a connection of its own unless an agent is given, so that any process may get it. */
  const ask = (path: string, { key = platform.apiKey, agent, headers }: Asking = {}) =>
    new Promise<{ status: number; text: string }>((resolve, reject) => {
      const given = { authorization: `Bearer ${key}`, ...headers };
      const req = request(`${platform.url}${path}`, { agent: agent ?? false, headers: given }, (res) => {
        read(res).then((text) => resolve({ status: res.statusCode ?? 0, text }), reject);
      });
      req.on("error", reject).end();
    });
  const everywhere = (path: string, options?: Asking) =>
    Promise.all(Array.from({ length: 12 }, () => ask(path, options)));
  const statuses = (answers: { status: number }[]): number[] => [...new Set(answers.map(({ status }) => status))];
  const metric = async (name: string): Promise<number> => {
    const { text } = await ask("/metrics");
    return Number(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, "m").exec(text)?.[1] ?? 0);
  };

  test("they serve workloads and hand the rest to the owner", async () => {
    assert.equal(platform.app.edgePids().length, PROCESSES);
    const answers = await everywhere(`${PAGE}/a?b=c`);
    for (const { status, text } of answers) assert.equal(`${status} ${text}`, "200 GET /a?b=c for 127.0.0.1");
    assert.equal((await ask("/healthz")).status, 200);
    assert.match((await ask("/main/sandboxes/none/x")).text, /WORKLOAD_NOT_FOUND/);
    assert.match((await ask(PAGE, { key: "wrong-key-0123456789" })).text, /AUTHENTICATION_FAILED/);
    await until("all are counted", async () => (await metric("berth_gateway_requests_total")) >= answers.length);
    assert.equal(await metric("berth_edge_processes"), PROCESSES);
  });

  test("a client cannot say whose request it is", async () => {
    await made("/sandboxes/box/previews", {
      metadata: { name: "web" },
      spec: { port: 3000, public: true, prefixUrl: "web" },
    });
    const forged = { "x-berth-peer": "client 203.0.113.9 https" };
    for (const path of [PAGE, "/main/previews/web-main"])
      for (const { status, text } of await everywhere(`${path}/who`, { headers: forged }))
        assert.equal(`${status} ${text}`, "200 GET /who for 127.0.0.1");
    const [name = ""] = readdirSync(join(platform.dataDir, "run")).filter((file) => file.endsWith(".sock"));
    const stranger = connect(join(platform.dataDir, "run", name));
    stranger.write(
      `${"x".repeat(32)}GET /healthz HTTP/1.1\r\nHost: a\r\nx-berth-peer: client 203.0.113.9 https\r\n\r\n`,
    );
    stranger.on("error", () => {}); // a reset is as good as an end
    let answered = "";
    stranger.on("data", (chunk) => (answered += chunk));
    await once(stranger, "close");
    assert.equal(answered, "");
  });

  test("a revoked key and a changed route are over when the change is answered", async () => {
    const { client_id: account } = await made("/service_accounts", { name: "short" });
    const keys = `/service_accounts/${account}/api_keys`;
    const { apiKey: key, id } = await made(keys, {});
    assert.deepEqual(statuses(await everywhere(PAGE, { key })), [200]);
    await made(`${keys}/${id}`, {}, "DELETE");
    assert.deepEqual(statuses(await everywhere(PAGE, { key })), [401]);

    const robot = await made("/service_accounts", { name: "robot" });
    const machine = { id: robot.client_id, secret: robot.client_secret };
    const token = await machineToken(platform.url, machine);
    assert.deepEqual(statuses(await everywhere(PAGE, { key: token })), [200]);
    const headers = { authorization: basic(machine) };
    const body = new URLSearchParams({ token });
    assert.equal((await fetch(`${platform.url}/oauth/revoke`, { method: "POST", headers, body })).status, 200);
    assert.deepEqual(statuses(await everywhere(PAGE, { key: token })), [401]);

    await made("/sandboxes", { metadata: { name: "brief" }, spec: {} });
    const brief = "/main/sandboxes/brief/port/3000";
    assert.deepEqual(statuses(await everywhere(brief)), [200]);
    await made("/sandboxes/brief", {}, "DELETE");
    assert.deepEqual(statuses(await everywhere(brief)), [404]);
  });

  test("a WebSocket goes through an edge process", async (t) => {
    const { hostname, port } = new URL(platform.url);
    const socket = connect(Number(port), hostname);
    t.after(() => socket.destroy());
    socket.write(
      `GET ${PAGE}/ws HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${platform.apiKey}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    );
    const [head] = (await once(socket, "data")) as [Buffer];
    assert.match(head.toString(), /^HTTP\/1\.1 101 /);
    socket.write("echo");
    assert.equal(String((await once(socket, "data"))[0]), "echo");
  });

  test("all processes together open no more requests than one would", async (t) => {
    const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY });
    t.after(() => agent.destroy());
    const asked = Array.from({ length: 2 * CALLER_MAX }, () => ask(`${PAGE}/hold`, { agent }));
    const refused = asked.map((one) => one.then(({ status }) => status === 429));
    let refusals = 0;
    for (const one of refused) void one.then((is) => (refusals += Number(is)));
    await until("each waits or is refused", () => refusals + waiting.length === asked.length);
    assert.ok(waiting.length <= CALLER_MAX, `${waiting.length} are open`);
    const { owner } = sharesOf(openMaxOf(2 * CALLER_MAX), PROCESSES);
    assert.ok(waiting.length > owner.caller, `only ${waiting.length} are open`);
    for (const res of waiting.splice(0)) res.end("late");
    await Promise.all(asked);
    assert.equal((await ask(PAGE)).status, 200, "there is room again");
  });

  test("a killed process takes its own connections with it, and is replaced", async () => {
    const [victim = 0, ...others] = platform.app.edgePids();
    const held = Array.from({ length: 6 }, () =>
      ask(`${PAGE}/hold`).then(
        () => "answered",
        () => "cut",
      ),
    );
    await until("all are open", () => waiting.length === held.length);
    process.kill(victim, "SIGKILL");
    // The port stays open: connections wait, or others take them.
    for (let round = 0; round < 5; round += 1) assert.deepEqual(statuses(await everywhere(PAGE)), [200]);
    await until("another takes its place", () => platform.app.edgePids().length === PROCESSES);
    assert.equal((await ask("/readyz")).text, '{"status":"ready"}');
    const now = platform.app.edgePids();
    assert.ok(!now.includes(victim) && others.every((pid) => now.includes(pid)), String(now));
    const cut = waiting.filter((res) => res.destroyed).length;
    for (const res of waiting.splice(0)) res.end("late");
    const outcomes = await Promise.all(held);
    assert.equal(outcomes.filter((outcome) => outcome === "cut").length, cut, outcomes.join(" "));
    assert.equal(await metric("berth_edge_restarts_total"), 1);
    assert.ok((await metric("berth_gateway_requests_total")) > 0, "what it had counted stays counted");
  });

  test("all processes killed at once: connections wait for those that follow", async () => {
    for (const pid of platform.app.edgePids()) process.kill(pid, "SIGKILL");
    assert.deepEqual(statuses(await everywhere(PAGE)), [200]);
    await until("others take their places", () => platform.app.edgePids().length === PROCESSES);
  });
});

interface Asking {
  key?: string;
  agent?: Agent;
  headers?: Record<string, string>;
}

async function read(res: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of res) text += chunk;
  return text;
}
