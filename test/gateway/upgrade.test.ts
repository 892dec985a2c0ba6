/** Upgraded connections are raw bytes both ways. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { WebSocket, WebSocketServer } from "ws";
import {
  AUTH,
  answering,
  eventually,
  exchange,
  inBothLanes,
  inEveryLane,
  listen,
  OK,
  RawClient,
  rawUpstream,
} from "./harness.ts";

const UPGRADE = "Connection: Upgrade\r\nUpgrade: echo\r\n";
const SWITCH = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\nX-App: 1\r\n\r\n";
const ask = (extra = ""): string => `GET /ws/agents/a/ws?x=1 HTTP/1.1\r\nHost: h\r\n${AUTH}${UPGRADE}${extra}\r\n`;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

inEveryLane("WebSocket clients talk to WebSocket servers", async (start, t) => {
  const server = createServer();
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket, req) => {
    socket.send(JSON.stringify([req.url, req.headers.authorization ?? null, req.headers["x-forwarded-prefix"]]));
    socket.on("message", (data, binary) => socket.send(data, { binary }));
  });
  const upstream = await listen(server);
  t.after(() => {
    server.close();
    server.closeAllConnections();
    for (const socket of sockets.clients) socket.terminate();
  });
  await using gw = await start({ upstream });
  // A browser cannot set headers: the token comes in the query and goes no further.
  const client = new WebSocket(`ws://127.0.0.1:${gw.port}/ws/agents/a/chat?a=1&token=good&b=2`);
  t.after(() => client.terminate());
  const [hello] = await once(client, "message");
  assert.deepEqual(JSON.parse(String(hello)), ["/chat?a=1&b=2", null, "/ws/agents/a"]);
  const big = Buffer.alloc(8 * 1024 * 1024, "z");
  client.send(big);
  const [back] = await once(client, "message");
  assert.ok(big.equals(back as Buffer));
  const record = gw.nextRecord();
  client.close(4001, "bye");
  const [code] = await once(client, "close");
  assert.equal(code, 4001);
  assert.equal((await record).status, 101);
  assert.ok((await record).bytesIn > big.length && (await record).bytesOut > big.length);
  assert.equal(gw.leases, 0);
});

inEveryLane("a browser sends its token as a subprotocol, which the workload never sees", async (start, t) => {
  const server = createServer();
  const handleProtocols = (offered: Set<string>): string | false => (offered.has("chat") ? "chat" : false);
  const sockets = new WebSocketServer({ server, handleProtocols });
  sockets.on("connection", (socket, req) => {
    socket.send(
      JSON.stringify([req.headers["sec-websocket-protocol"] ?? null, req.rawHeaders.join().includes("good")]),
    );
  });
  const upstream = await listen(server);
  t.after(() => {
    server.close();
    server.closeAllConnections();
    for (const socket of sockets.clients) socket.terminate();
  });
  await using gw = await start({ upstream });
  const open = async (protocols: string[]) => {
    const client = new WebSocket(`ws://127.0.0.1:${gw.port}/ws/agents/a/chat`, protocols);
    t.after(() => client.terminate());
    const [hello] = await once(client, "message");
    return { chosen: client.protocol, seen: JSON.parse(String(hello)) };
  };
  assert.deepEqual(await open(["service", "service.bearer.good"]), { chosen: "service", seen: [null, false] });
  assert.deepEqual(await open(["service", "chat", "service.bearer.good"]), { chosen: "chat", seen: ["chat", false] });
  for (const protocols of [["service", "service.bearer.wrong"], ["service"]])
    await assert.rejects(open(protocols), /401/);
});

inEveryLane("bytes behind either head are not lost", async (start) => {
  await using up = await rawUpstream((socket, received) => {
    socket.on("data", () => {
      if (received().endsWith("\r\n\r\n")) socket.write(`${SWITCH}from-workload`);
      if (received().endsWith("from-client")) socket.end("done");
    });
  });
  await using gw = await start({ upstream: up.port });
  using client = await RawClient.to(gw.port);
  client.write(`${ask()}from-client`);
  const all = await client.end();
  assert.ok(
    /^HTTP\/1\.1 101 Switching Protocols\r\nX-App: 1\r\nX-Request-Id: [^\r]+\r\n(?:X-\w+-Time-Limit: [^\r]+\r\n)*Upgrade: echo\r\nConnection: Upgrade\r\n\r\n/.test(
      all,
    ),
    all,
  );
  assert.ok(all.endsWith("\r\n\r\nfrom-workloaddone"), all);
  assert.match(
    up.received[0] ?? "",
    /^GET \/ws\?x=1 HTTP\/1\.1\r\n[\s\S]*\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\nfrom-client$/,
  );
});

inEveryLane("each direction may end on its own", async (start, t) => {
  await using up = await rawUpstream((socket, received) => {
    socket.on("data", () => {
      if (received().endsWith("\r\n\r\n")) socket.write(SWITCH);
    });
    socket.on("end", () => socket.end("the rest"));
  });
  await using gw = await start({ upstream: up.port });
  const socket = connect({ port: gw.port, host: "127.0.0.1", allowHalfOpen: true });
  t.after(() => socket.destroy());
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk.toString();
    if (text.endsWith("\r\n\r\n")) socket.end("last words");
  });
  socket.write(ask());
  await once(socket, "end");
  assert.ok(text.endsWith("\r\n\r\nthe rest"), text);
  assert.ok(up.received[0]?.endsWith("\r\n\r\nlast words"));
  await eventually(() => gw.records.length === 1, "the tunnel is recorded");
});

inBothLanes("an idle connection keeps nothing of its request in memory", async (start) => {
  await using up = await rawUpstream(answering(SWITCH));
  await using gw = await start({ upstream: up.port });
  const requests: WeakRef<object>[] = [];
  gw.server.on("upgrade", (req: object) => requests.push(new WeakRef(req)));
  const clients = await Promise.all(
    Array.from({ length: 16 }, async () => {
      const client = await RawClient.to(gw.port);
      await client.write(ask()).until((text) => text.endsWith("\r\n\r\n"));
      return client;
    }),
  );
  assert.equal(requests.length, clients.length);
  // The last request may still be on the stack, or known to Node's parser.
  await eventually(() => {
    collectGarbage();
    return requests.filter((one) => one.deref() !== undefined).length <= 1;
  }, "the requests are forgotten");
  for (const socket of up.connections) socket.destroy();
  await eventually(() => gw.records.length === clients.length, "every tunnel is recorded");
});

inEveryLane("a workload that does not switch is answered like any other", async (start) => {
  await using up = await rawUpstream(answering("HTTP/1.1 426 Upgrade Required\r\nContent-Length: 4\r\n\r\nnope"));
  await using gw = await start({ upstream: up.port });
  const response = await exchange(gw.port, ask());
  assert.match(response, /^HTTP\/1\.1 426 Upgrade Required\r\n[\s\S]*Connection: close\r\n\r\nnope$/);
});

inEveryLane("refusals of upgrades are proper responses", async (start) => {
  await using gw = await start({ upstream: 1 });
  const rows: [request: string, code: string][] = [
    [ask().replace(AUTH, ""), "AUTHENTICATION_REQUIRED"],
    [ask(), "WORKLOAD_NOT_LISTENING"],
    [ask("Content-Length: 4\r\n"), "BAD_REQUEST"],
    [ask().replace("/ws/agents/a/", "/ws/agents/none/"), "WORKLOAD_NOT_FOUND"],
  ];
  for (const [request, code] of rows) assert.match(await exchange(gw.port, request), new RegExp(`"code":"${code}"`));
  assert.match(await exchange(gw.port, ask().replace("/ws/agents/a/", "/v0/")), /^HTTP\/1\.1 404 /);
});

inEveryLane("an offer of HTTP/2 is no upgrade", async (start) => {
  await using up = await rawUpstream(answering(OK));
  await using gw = await start({ upstream: up.port });
  const response = await exchange(
    gw.port,
    `POST /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: 2\r\n\r\nhi`,
  );
  assert.match(response, /\r\n\r\nok$/);
  assert.doesNotMatch(up.received[0] ?? "", /h2c|http2-settings/i);
});

inEveryLane("a silent tunnel is cut, and so is one whose other side breaks", async (start) => {
  await using up = await rawUpstream(answering(SWITCH));
  await using gw = await start({ upstream: up.port, exchange: { tunnelIdleMs: 80 } });
  using client = await RawClient.to(gw.port);
  client.write(ask());
  await client.end();
  await eventually(() => up.connections[0]?.readableEnded === true, "the workload is left");

  await using calm = await start({ upstream: up.port });
  using second = await RawClient.to(calm.port);
  second.write(ask());
  await second.until((text) => text.includes("101"));
  up.connections[1]?.resetAndDestroy();
  await second.end();
  await eventually(() => calm.records.length === 1 && calm.leases === 0, "it is over");
});

inBothLanes("a tunnel of a client that breaks is over", async (start) => {
  await using up = await rawUpstream(answering(SWITCH));
  await using calm = await start({ upstream: up.port });
  using third = await RawClient.to(calm.port);
  third.write(ask());
  await third.until((text) => text.includes("101"));
  third.socket.resetAndDestroy();
  await eventually(() => calm.records.length === 1 && calm.leases === 0, "it is over");
});

inEveryLane("a tunnel whose reader sleeps holds back its writer", async (start) => {
  let sent = 0;
  await using up = await rawUpstream((socket) => {
    socket.once("data", () => {
      socket.write(SWITCH);
      const block = Buffer.alloc(1024 * 1024);
      const pump = (): void => {
        while (sent < 200) {
          sent += 1;
          if (!socket.write(block)) {
            socket.once("drain", pump);
            return;
          }
        }
      };
      pump();
    });
  });
  await using gw = await start({ upstream: up.port });
  using client = await RawClient.to(gw.port);
  client.socket.pause();
  client.write(ask());
  for (let same = 0, last = -1; same < 15; ) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    same = sent === last && sent > 0 ? same + 1 : 0;
    last = sent;
  }
  assert.ok(sent < 60, `${sent} MB went into a tunnel that nobody reads`);
});

inEveryLane("stopping the gateway ends its tunnels", async (start) => {
  await using up = await rawUpstream(answering(SWITCH));
  await using gw = await start({ upstream: up.port });
  using client = await RawClient.to(gw.port);
  client.write(ask());
  await client.until((text) => text.includes("101"));
  await gw.gateway.stop();
  await client.end();
  assert.equal(gw.leases, 0);
});
