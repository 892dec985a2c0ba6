/** The port between servers: who lacks the key gets nothing, and nobody speaks for a client but a server with the key. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { type TestContext, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { markWorkload } from "../../src/http/peer-field.ts";
import {
  AUTH,
  answering,
  dial,
  eventually,
  exchange,
  listen,
  OK,
  RawClient,
  rawUpstream,
  startHandingGateway,
  startTestGateway,
} from "../gateway/harness.ts";
import { ASKER, keyOf, OWNER, type PeerChannel, peerChannel } from "../peer-channel.ts";

const GET = `GET /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}Connection: close\r\n\r\n`;
const HANDED = "x-berth-peer: client 203.0.113.9 https\r\n";

/** A channel whose far end answers every head with `answer` and counts its connections. */
async function openChannel(
  t: TestContext,
  options: Parameters<typeof peerChannel>[1] = {},
  answer = OK,
): Promise<PeerChannel & { accepted: Duplex[] }> {
  const accepted: Duplex[] = [];
  const channel = await peerChannel((socket) => {
    accepted.push(socket);
    socket.on("data", () => socket.write(answer));
  }, options);
  t.after(() => channel.stop());
  return Object.assign(channel, { accepted });
}

/** Everything that comes back on a connection of whatever kind until it ends. */
async function answerTo(socket: Duplex, text: string): Promise<string> {
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
  });
  socket.on("error", () => {});
  if (text !== "") socket.write(text, "latin1");
  await new Promise((resolve) => socket.once("close", resolve).once("end", resolve));
  socket.destroy();
  return received;
}

test("without the key there is no answer: plain HTTP, TLS without a key, a wrong key, a wrong identity", async (t) => {
  const channel = await openChannel(t);
  const { port } = channel.listener.address;
  assert.doesNotMatch(await answerTo(await dial(port), `GET / HTTP/1.1\r\nHost: h\r\n${HANDED}\r\n`), /HTTP/);
  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const)
    assert.equal(
      await answerTo(connectTls({ port, host: "127.0.0.1", maxVersion, rejectUnauthorized: false }), ""),
      "",
    );
  const psk = { port, host: "127.0.0.1", maxVersion: "TLSv1.2" as const, checkServerIdentity: () => undefined };
  for (const ciphers of ["PSK-AES128-GCM-SHA256", "ECDHE-PSK-AES128-CBC-SHA256", "ECDHE-PSK-CHACHA20-POLY1305"]) {
    const pskCallback = () => ({ psk: keyOf("a guess"), identity: ASKER });
    assert.equal(await answerTo(connectTls({ ...psk, ciphers, pskCallback }), GET), "");
  }
  const strange = { psk: keyOf("shared by all servers of one database"), identity: "a b" };
  const ciphers = "ECDHE-PSK-CHACHA20-POLY1305";
  assert.equal(await answerTo(connectTls({ ...psk, ciphers, pskCallback: () => strange }), GET), "");
  assert.equal(channel.accepted.length, 0);
  assert.ok(channel.refused.length >= 6);
});

test("a server with another key is refused in both directions, and the caller learns which node is away", async (t) => {
  const channel = await openChannel(t, { peers: { key: keyOf("another platform") } });
  await assert.rejects(channel.peers.dial(OWNER), {
    name: "PlatformError",
    status: 503,
    message: /name of node-owner/,
  });
  assert.equal(channel.accepted.length, 0);
});

test("the node at an address must be the node that was asked for", async (t) => {
  const channel = await openChannel(t, { listener: { self: "node-third" } });
  await assert.rejects(channel.peers.dial(OWNER), ({ cause }: Error) => /is the node node-third/.test(String(cause)));
});

test("a recorded connection, sent again byte for byte, is refused", async (t) => {
  let recorded = "";
  const tap = createServer((client) => {
    const server = connect(channel.listener.address.port, "127.0.0.1");
    client.on("data", (chunk) => {
      recorded += chunk.toString("latin1");
    });
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.pipe(to);
      from.on("error", () => to.destroy());
    }
  });
  const tapPort = await listen(tap);
  const channel = await openChannel(t, { port: () => tapPort });
  t.after(() => tap.close());
  const socket = await channel.peers.dial(OWNER);
  socket.write(GET);
  await once(socket, "data");
  socket.destroy();
  assert.equal(channel.accepted.length, 1);
  assert.doesNotMatch(recorded, /Bearer|agents/, "the channel is encrypted");
  assert.doesNotMatch(await answerTo(await dial(channel.listener.address.port), recorded), /HTTP/);
  assert.equal(channel.accepted.length, 1);
});

test("a flood of connections without a handshake costs a bounded number, and peers still get through", async (t) => {
  const channel = await openChannel(t, { listener: { limits: { strangersMax: 5 } } });
  const flood: Socket[] = [];
  t.after(() => flood.forEach((socket) => void socket.destroy()));
  for (let n = 0; n < 40; n += 1) {
    const socket = await dial(channel.listener.address.port);
    socket.on("error", () => {});
    if (n % 2) socket.write("\x16\x03\x01");
    flood.push(socket);
  }
  await eventually(
    () => flood.filter(({ closed, readableEnded }) => !closed && !readableEnded).length <= 5,
    "the oldest go",
  );
  (await channel.peers.dial(OWNER)).destroy();
  await eventually(() => channel.accepted.length === 1, "the peer was accepted");
});

test("a stranger that says nothing is closed in time", async (t) => {
  const channel = await openChannel(t, { listener: { limits: { handshakeMs: 50 } } });
  assert.equal(await answerTo(await dial(channel.listener.address.port), ""), "");
});

test("a client's own description of itself counts nowhere and reaches no workload", async () => {
  for (const start of [startTestGateway, startHandingGateway]) {
    await using up = await rawUpstream(answering(OK));
    await using gw = await start({ upstream: up.port });
    for (const forged of [
      HANDED,
      `${HANDED}Connection: x-berth-peer\r\n`,
      HANDED + HANDED,
      "X-BERTH-PEER: server\r\n",
    ]) {
      const before = up.received.join("").length;
      assert.match(await exchange(gw.port, GET.replace("Connection", `${forged}Connection`)), /^HTTP\/1\.1 200 /);
      const seen = up.received.join("").slice(before);
      assert.match(seen, /\r\nX-Forwarded-For: 127\.0\.0\.1\r\nX-Forwarded-Proto: http\r\n/);
      assert.doesNotMatch(seen, /x-berth-peer|203\.0\.113/i);
    }
  }
});

test("a peer connection must describe the client of every request, once and readably", async (t) => {
  await using up = await rawUpstream(answering(OK));
  await using gw = await startTestGateway({ upstream: up.port });
  const channel = await peerChannel((socket) => gw.server.emit("connection", socket));
  t.after(() => channel.stop());
  const ask = async (fields: string, first = "GET /ws/agents/a"): Promise<string> =>
    answerTo(
      await channel.peers.dial(OWNER),
      `${first} HTTP/1.1\r\nHost: h\r\n${AUTH}${fields}Connection: close\r\n\r\n`,
    );
  assert.match(await ask(HANDED), /^HTTP\/1\.1 200 /);
  assert.match(up.received.join(""), /\r\nX-Forwarded-For: 203\.0\.113\.9\r\nX-Forwarded-Proto: https\r\n/);
  const wrong = [
    "",
    HANDED + HANDED,
    "x-berth-peer: \r\n",
    "x-berth-peer: client a,b https\r\n",
    "x-berth-peer: server\r\n",
  ];
  for (const fields of wrong) assert.match(await ask(fields), /^HTTP\/1\.1 400 /, fields);
  assert.match(await ask(`${HANDED}X-Long: ${"x".repeat(80_000)}\r\n`), /^HTTP\/1\.1 431 /);
  const upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
  const socket = await channel.peers.dial(OWNER);
  assert.match(
    await answerTo(socket, `GET /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}${upgrade}\r\n`),
    /^HTTP\/1\.1 400 /,
  );
});

test("a request that was handed on is not handed on again", async (t) => {
  await using gw = await startTestGateway({ upstream: 1, workloads: [{ elsewhere: "node-third" }] });
  const channel = await peerChannel((socket) => gw.server.emit("connection", socket));
  t.after(() => channel.stop());
  const answer = await answerTo(await channel.peers.dial(OWNER), GET.replace("Connection", `${HANDED}Connection`));
  assert.match(answer, /^HTTP\/1\.1 503 [\s\S]*"code":"NODE_UNAVAILABLE"/);
});

test("workloads whose requests another server hands on have a share each, and cannot name another workload", async (t) => {
  const OPEN_MAX = 8;
  await using up = await rawUpstream(() => {}); // never answers, so that requests stay open
  const workloads = [{ public: true }];
  const limits = { openMax: { server: 8 * OPEN_MAX, workspace: OPEN_MAX, caller: OPEN_MAX } };
  await using owner = await startTestGateway({ upstream: up.port, workloads, limits });
  const channel = await peerChannel((socket) => owner.server.emit("connection", socket));
  t.after(() => channel.stop());
  await using front = await startTestGateway({
    ...{ upstream: 1, workloads: workloads.map((each) => ({ ...each, elsewhere: OWNER })) },
    deps: { peers: { dial: channel.peers.dial, replay: () => assert.fail() } },
  });
  // The doors of two workloads: sockets in a folder, as the driver makes them.
  const folder = mkdtempSync(join(tmpdir(), "berth-doors-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const sockets: Socket[] = [];
  const doorOf = async (uid: string) => {
    const door = createServer((socket) => {
      markWorkload(socket, uid);
      front.server.emit("connection", socket);
    }).listen(join(folder, uid));
    await once(door, "listening");
    t.after(() => door.close());
    return async (forged = ""): Promise<string> => {
      const socket = connect(join(folder, uid));
      sockets.push(socket);
      const before = owner.leases;
      socket.write(`GET /ws/agents/a HTTP/1.1\r\nHost: h\r\n${forged}\r\n`);
      let received = "";
      socket.on("data", (chunk) => {
        received += chunk.toString("latin1");
      });
      await eventually(() => owner.leases > before || received.includes("}}"), "an answer or an open request");
      return received.slice(0, 12);
    };
  };
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  const [greedy, small] = [await doorOf("uid-greedy"), await doorOf("uid-small")];
  const answers: string[] = [];
  for (let at = 0; at <= OPEN_MAX; at += 1) answers.push(await greedy());
  assert.equal(answers.at(-1), "HTTP/1.1 429");
  assert.equal(await greedy("x-berth-peer: client @uid-small http\r\n"), "HTTP/1.1 429");
  assert.equal(await small(), "", "the other workload's request is open");
});

test("nonsense of a peer never looks like an answer of the workload", async (t) => {
  const nonsense = ["\x00\x01\x02\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "HTTP/9.9 999\r\n\r\n"];
  for (const answer of nonsense) {
    const channel = await openChannel(t, {}, answer);
    const peers = { dial: channel.peers.dial, replay: () => Promise.reject(new Error("not asked for")) };
    await using gw = await startTestGateway({ upstream: 1, workloads: [{ elsewhere: OWNER }], deps: { peers } });
    assert.match(await exchange(gw.port, GET), /^HTTP\/1\.1 502 [\s\S]*"code":"NODE_CONNECTION_CLOSED"/);
  }
});

test("a peer behind a network that went silent is given up, and the client is cut", async (t) => {
  const through: Socket[] = [];
  const proxy = createServer((client) => {
    const server = connect(channel.listener.address.port, "127.0.0.1");
    through.push(client, server);
    for (const socket of [client, server]) socket.on("error", () => {});
    client.pipe(server);
    server.pipe(client);
  });
  const port = await listen(proxy);
  const begun = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun";
  const channel = await openChannel(
    t,
    { port: () => port, peers: { times: { pingMs: 20, silenceMaxMs: 100 } } },
    begun,
  );
  t.after(() => {
    for (const socket of through) socket.destroy();
    proxy.close();
  });
  const peers = { dial: channel.peers.dial, replay: () => Promise.reject(new Error("not asked for")) };
  await using gw = await startTestGateway({ upstream: 1, workloads: [{ elsewhere: OWNER }], deps: { peers } });
  using client = await RawClient.to(gw.port);
  client.write(GET);
  await client.until((text) => text.endsWith("begun"));
  for (const socket of through) socket.unpipe().pause();
  await client.end();
  assert.ok(client.received.endsWith("begun"));
});
