/** Each limit ends an exchange with an error of its own, and large bodies pass through little memory. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { connect, type Socket } from "node:net";
import {
  AUTH,
  answering,
  eventually,
  exchange,
  heldClock,
  inBothLanes,
  listen,
  OK,
  RawClient,
  rawUpstream,
} from "./harness.ts";

const GET = `GET /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}Connection: close\r\n\r\n`;
const codeOf = (response: string): string => /"code":"(\w+)"/.exec(response)?.[1] ?? response;

inBothLanes("silence ends a request; every chunk starts the time anew", async (start) => {
  using clock = heldClock();
  await using up = await rawUpstream(answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
  await using gw = await start({ upstream: up.port, exchange: { idleMs: 60_000 } });
  using client = await RawClient.to(gw.port);
  client.write(GET);
  await client.until((text) => text.includes("\r\n\r\n"));
  for (const chunk of ["1\r\na\r\n", "1\r\nb\r\n", "0\r\n\r\n"]) {
    await clock.pass(40_000);
    up.connections[0]?.write(chunk);
    await client.until((text) => text.endsWith(chunk));
  }
  await using mute = await rawUpstream(() => {});
  await using quiet = await start({ upstream: mute.port, exchange: { idleMs: 60_000 } });
  const answered = exchange(quiet.port, GET);
  await eventually(() => (mute.received[0] ?? "").endsWith("\r\n\r\n"), "the request arrives");
  await clock.pass(61_000);
  const response = await answered;
  assert.match(response, /^HTTP\/1\.1 504 /);
  assert.equal(codeOf(response), "IDLE_TIMEOUT");
  await eventually(() => mute.connections[0]?.readableEnded === true, "the workload is left");
});

inBothLanes("silence in the middle of a response cuts it", async (start) => {
  using clock = heldClock();
  await using up = await rawUpstream(answering("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"));
  await using gw = await start({ upstream: up.port, exchange: { idleMs: 60_000 } });
  using client = await RawClient.to(gw.port);
  client.write(GET);
  await client.until((text) => text.endsWith("half"));
  await clock.pass(61_000);
  assert.match(await client.end(), /\r\n\r\nhalf$/);
  assert.equal(gw.records[0]?.error, "IDLE_TIMEOUT");
});

inBothLanes("no request lasts longer than the total, however busy", async (start) => {
  await using up = await rawUpstream((socket) => {
    socket.once("data", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      const timer = setInterval(() => socket.write("x"), 10);
      socket.once("close", () => clearInterval(timer));
    });
  });
  await using gw = await start({ upstream: up.port, exchange: { totalMs: 150 } });
  await exchange(gw.port, GET);
  assert.equal(gw.records[0]?.error, "DURATION_EXCEEDED");
  await using mute = await rawUpstream(() => {});
  await using late = await start({ upstream: mute.port, exchange: { totalMs: 80 } });
  assert.equal(codeOf(await exchange(late.port, GET)), "DURATION_EXCEEDED");
});

inBothLanes("one workload cannot take all connections", async (start) => {
  await using up = await rawUpstream(() => {});
  await using gw = await start({ upstream: up.port, limits: { connectionsMax: 2 } });
  using one = await RawClient.to(gw.port);
  using two = await RawClient.to(gw.port);
  one.write(GET);
  two.write(GET);
  await eventually(() => up.connections.length === 2, "both run");
  assert.match(await exchange(gw.port, GET), /^HTTP\/1\.1 503 [\s\S]*OVERLOADED/);
});

inBothLanes("headers beyond the size are refused with their own code", async (start) => {
  await using gw = await start({ upstream: 1 });
  const response = await exchange(gw.port, `GET /ws/agents/a HTTP/1.1\r\nHost: h\r\nX: ${"a".repeat(70_000)}\r\n\r\n`);
  assert.match(response, /^HTTP\/1\.1 431 [\s\S]*X-Service-Source: platform\r\n[\s\S]*REQUEST_HEADERS_TOO_LARGE/);
});

inBothLanes("many headers pass completely", async (start) => {
  await using up = await rawUpstream(answering(OK));
  await using gw = await start({ upstream: up.port });
  const many = Array.from({ length: 2500 }, (_, i) => `X-${i}: v\r\n`).join("");
  await exchange(gw.port, `GET /ws/agents/a HTTP/1.1\r\nHost: h\r\n${many}${AUTH}Connection: close\r\n\r\n`);
  assert.equal(up.received[0]?.match(/\r\nX-\d+: v/g)?.length, 2500);
});

const MB = 1024 * 1024;

inBothLanes("a slow reader slows the workload down instead of filling memory", async (start) => {
  let sent = 0;
  await using up = await rawUpstream((socket) => {
    socket.once("data", () => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n");
      const block = Buffer.alloc(MB, "x");
      const pump = (): void => {
        while (sent < 300 * MB) {
          sent += MB;
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
  const client = connect(gw.port, "127.0.0.1");
  client.on("error", () => {});
  client.pause();
  client.write(GET);
  await stableFor(() => sent);
  // What fits into kernel buffers of both hops and one read; without backpressure all 300 MB would be taken.
  assert.ok(sent < 60 * MB, `the workload could send ${sent / MB} MB to a client that reads nothing`);
  client.destroy();
});

inBothLanes("a slow workload slows the uploading client down", async (start) => {
  await using up = await rawUpstream((socket: Socket) => socket.pause());
  await using gw = await start({ upstream: up.port });
  const client = connect(gw.port, "127.0.0.1");
  client.on("error", () => {});
  client.write(`POST /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}Content-Length: ${300 * MB}\r\n\r\n`);
  let sent = 0;
  const block = Buffer.alloc(MB, "x");
  const pump = (): void => {
    while (sent < 300 * MB) {
      sent += MB;
      if (!client.write(block)) {
        client.once("drain", pump);
        return;
      }
    }
  };
  pump();
  await stableFor(() => sent);
  assert.ok(sent < 60 * MB, `the client could send ${sent / MB} MB to a workload that reads nothing`);
  client.destroy();
});

inBothLanes("200 MB in each direction arrive whole", async (start) => {
  const size = 200 * MB;
  const server = createServer((req, res) => {
    let received = 0;
    req.on("data", (chunk: Buffer) => {
      received += chunk.length;
      if (!res.write(chunk)) {
        req.pause();
        res.once("drain", () => req.resume());
      }
    });
    req.on("end", () => {
      res.addTrailers({ "x-received": String(received) });
      res.end();
    });
    res.writeHead(200, { trailer: "x-received" });
  });
  const upstream = await listen(server);
  await using gw = await start({ upstream });
  const req = request(`${gw.url}/ws/agents/a`, { method: "POST", headers: { authorization: "Bearer good" } });
  let got = 0;
  const done = new Promise<string | undefined>((resolve) => {
    req.on("response", (res) => {
      res.on("data", (chunk: Buffer) => {
        got += chunk.length;
      });
      res.on("end", () => resolve(res.trailers["x-received"]));
    });
  });
  const block = Buffer.alloc(MB, "y");
  for (let sent = 0; sent < size; sent += MB) if (!req.write(block)) await once(req, "drain");
  req.end();
  assert.deepEqual([await done, got], [String(size), size]);
  assert.deepEqual([gw.records[0]?.bytesIn, gw.records[0]?.bytesOut], [size, size]);
  server.close();
  server.closeAllConnections();
});

/** Resolves when the value has not changed for a while. */
async function stableFor(read: () => number): Promise<void> {
  for (let same = 0, last = -1; same < 15; ) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    const now = read();
    same = now === last && now > 0 ? same + 1 : 0;
    last = now;
  }
}
