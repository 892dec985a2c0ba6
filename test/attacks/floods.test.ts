/** Floods of connections, WebSockets and slow bodies: one address or one workspace cannot keep the others out. */
import assert from "node:assert/strict";
import { once } from "node:events";
import {
  AUTH,
  type RawClient as Client,
  eventually,
  heldClock,
  inBothLanes,
  RawClient,
  rawUpstream,
} from "../gateway/harness.ts";
import { LONG } from "../long.ts";

const MAX = LONG ? 400 : 16;
/** From here on, whoever has an even share gets no more. */
const CALM = (MAX * 3) / 4;
const [ATTACKER, SOMEBODY] = ["127.0.0.1", "127.0.0.2"] as const;
const WORKLOADS = [
  { uid: "uid-1", workspace: "ws", name: "a" },
  { uid: "uid-2", workspace: "ws", name: "public", public: true },
  { uid: "uid-3", workspace: "ws2", name: "b" },
];
const AS_WEBSOCKET = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
const ask = (path: string, more = ""): string => `GET ${path} HTTP/1.1\r\nHost: h\r\n${more}\r\n`;
const isAnswered = (text: string): boolean => text.includes("\r\n\r\n");

/** Clients that are closed when the test ends. */
function crowd() {
  const clients: Client[] = [];
  return {
    clients,
    async send(port: number, text: string, from: string = ATTACKER): Promise<string> {
      const client = await RawClient.to(port, from);
      clients.push(client);
      return client.write(text).until(isAnswered);
    },
    [Symbol.dispose]() {
      for (const { socket } of clients) socket.destroy();
    },
  };
}

const webSockets = () =>
  rawUpstream((socket) => {
    socket.on("end", () => socket.end());
    socket.once("data", () =>
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
    );
  });

inBothLanes("a flood of WebSockets from one address leaves room for others at a public workload", async (start) => {
  await using upstream = await webSockets();
  const openMax = { server: MAX * 4, workspace: MAX, caller: MAX };
  await using gw = await start({ upstream: upstream.port, workloads: WORKLOADS, limits: { openMax } });
  using people = crowd();
  const open = (from: string) => people.send(gw.port, ask("/ws/agents/public/x", AS_WEBSOCKET), from);
  for (let at = 0; at < CALM; at += 1) assert.match(await open(ATTACKER), /^HTTP\/1\.1 101 /);
  assert.match(await open(SOMEBODY), /^HTTP\/1\.1 101 /);
  assert.match(await open(ATTACKER), /^HTTP\/1\.1 429 .*Retry-After: 1.*"RATE_LIMITED".*its share/is);
  assert.match(await open(SOMEBODY), /^HTTP\/1\.1 101 /);
});

inBothLanes("visitors behind a proxy are told apart by what the proxy says, not by what they say", async (start) => {
  await using upstream = await webSockets();
  const openMax = { server: MAX * 4, workspace: MAX, caller: MAX };
  const options = { workloads: WORKLOADS, limits: { openMax }, trustProxy: true };
  await using gw = await start({ upstream: upstream.port, ...options });
  using people = crowd();
  const open = (forged: string, told: string) => {
    const fields = `X-Forwarded-For: ${forged}\r\nX-Forwarded-For: ${told}\r\n`;
    return people.send(gw.port, ask("/ws/agents/public/x", AS_WEBSOCKET + fields));
  };
  const attack = (at: number) => open(`192.0.2.${at}`, "203.0.113.1");
  for (let at = 0; at < CALM; at += 1) assert.match(await attack(at % 250), /^HTTP\/1\.1 101 /);
  assert.match(await open("203.0.113.1", "198.51.100.1"), /^HTTP\/1\.1 101 /);
  assert.match(await attack(251), /^HTTP\/1\.1 429 .*its share/is);
  assert.match(await open("203.0.113.1", "198.51.100.1"), /^HTTP\/1\.1 101 /);
});

inBothLanes("a flood of one workspace's own requests leaves room for other workspaces", async (start) => {
  await using upstream = await webSockets();
  const openMax = { server: MAX, workspace: MAX, caller: MAX };
  await using gw = await start({ upstream: upstream.port, workloads: WORKLOADS, limits: { openMax } });
  using people = crowd();
  const open = (path: string) => people.send(gw.port, ask(path, AS_WEBSOCKET + AUTH));
  for (let at = 0; at < CALM; at += 1) assert.match(await open("/ws/agents/a/x"), /^HTTP\/1\.1 101 /);
  for (let at = CALM; at < MAX; at += 1) {
    assert.match(await open("/ws2/agents/b/x"), /^HTTP\/1\.1 101 /);
    if (at === CALM) assert.match(await open("/ws/agents/a/x"), /^HTTP\/1\.1 503 .*Retry-After: 1.*"OVERLOADED"/is);
  }
  assert.match(await open("/ws2/agents/b/x"), /^HTTP\/1\.1 503 .*"OVERLOADED"/is);
  for (const { socket } of people.clients) socket.destroy();
  await eventually(() => gw.leases === 0, "nothing is kept of them");
  assert.match(await open("/ws/agents/a/x"), /^HTTP\/1\.1 101 /);
});

inBothLanes("connections beyond the limit are told to come back, those of others are served", async (start) => {
  await using gw = await start({ upstream: 1, limits: { clientsMax: MAX } });
  using people = crowd();
  const ping = (from: string) => people.send(gw.port, ask("/v0/x"), from);
  for (let at = 0; at < CALM; at += 1) assert.match(await ping(ATTACKER), /^HTTP\/1\.1 200 /);
  assert.match(await ping(SOMEBODY), /^HTTP\/1\.1 200 /);
  assert.match(await ping(ATTACKER), /^HTTP\/1\.1 503 .*Retry-After: 1.*"OVERLOADED"/is);
  assert.match(await ping(SOMEBODY), /^HTTP\/1\.1 200 /);
  for (const { socket } of people.clients.slice(0, 3)) socket.destroy();
  await eventually(() => gw.gateway.connections.open < CALM, "their places are free");
  assert.match(await ping(ATTACKER), /^HTTP\/1\.1 200 /);
});

inBothLanes("half-open connections of one address do not displace a slow client of another", async (start) => {
  await using gw = await start({ upstream: 1, limits: { newcomersMax: MAX } });
  using people = crowd();
  const slow = await RawClient.to(gw.port, SOMEBODY);
  people.clients.push(slow.write("GET /v0/x HT"));
  await eventually(() => gw.gateway.newcomers.size === 1, "the slow client is there");
  for (let at = 0; at < MAX * 2; at += 1) people.clients.push((await RawClient.to(gw.port, ATTACKER)).write("GET"));
  const closed = (): number => people.clients.filter((one) => one.closed || one.ended).length;
  await eventually(() => closed() > MAX, "the attacker's own are closed");
  assert.equal(slow.closed, false);
  assert.match(await slow.write("TP/1.1\r\nHost: h\r\n\r\n").until(isAnswered), /^HTTP\/1\.1 200 /);
});

inBothLanes("a body of known length that stops is given up, chunks may come late", async (start) => {
  using clock = heldClock();
  await using upstream = await rawUpstream(() => {});
  await using gw = await start({ upstream: upstream.port, exchange: { bodyIdleMs: 60_000, idleMs: 900_000 } });
  using people = crowd();
  const begin = async (framing: string, body: string): Promise<Client> => {
    const client = await RawClient.to(gw.port);
    people.clients.push(client);
    return client.write(`POST /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}${framing}\r\n\r\n${body}`);
  };
  const stalled = await begin("Content-Length: 10", "abc");
  const chunked = await begin("Transfer-Encoding: chunked", "3\r\nabc\r\n");
  const whole = await begin("Content-Length: 3", "abc");
  await eventually(
    () => upstream.received.filter((text) => text.endsWith("abc") || text.endsWith("abc\r\n")).length === 3,
    "all began",
  );
  await clock.pass(30_000);
  stalled.write("d");
  await eventually(() => upstream.received.some((text) => text.endsWith("abcd")), "another byte");
  await clock.pass(50_000);
  assert.equal(stalled.received, "", "every byte starts the time anew");
  await clock.pass(20_000);
  assert.match(await stalled.until(isAnswered), /^HTTP\/1\.1 408 .*"REQUEST_TIMEOUT"/is);
  assert.deepEqual([chunked.received, whole.received], ["", ""]);
});

inBothLanes("a WebSocket whose client is gone ends soon, also when the workload does not notice", async (start) => {
  using clock = heldClock();
  await using upstream = await rawUpstream((socket) => {
    socket.once("data", () =>
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
    );
  });
  await using gw = await start({ upstream: upstream.port });
  using people = crowd();
  for (let at = 0; at < 2; at += 1)
    assert.match(await people.send(gw.port, ask("/ws/agents/a/x", AUTH + AS_WEBSOCKET)), /^HTTP\/1\.1 101 /);
  const gone = once(upstream.connections[0] ?? assert.fail(), "end");
  people.clients[0]?.socket.destroy();
  await gone;
  assert.equal(gw.leases, 2);
  await clock.pass(61_000);
  await eventually(() => gw.leases === 1, "the connection to the workload is closed");
  assert.equal(people.clients[1]?.closed, false, "a client that is only silent stays");
});

inBothLanes("a server that is short of memory takes no new requests for workloads", async (start) => {
  using clock = heldClock();
  await using upstream = await rawUpstream((socket) => {
    socket.on("data", () => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
  });
  let used = 95;
  await using gw = await start({ upstream: upstream.port, deps: { memoryUse: () => [{ used, max: 100 }] } });
  using people = crowd();
  const get = () => people.send(gw.port, ask("/ws/agents/a/x", AUTH));
  assert.match(await get(), /^HTTP\/1\.1 503 .*Retry-After: 5.*"OVERLOADED"/is);
  assert.match(await people.send(gw.port, ask("/v0/x")), /^HTTP\/1\.1 200 /);
  assert.equal(upstream.connections.length, 0);
  used = 50;
  await clock.pass(1000);
  assert.match(await get(), /^HTTP\/1\.1 200 /);
});
