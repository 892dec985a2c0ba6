/** A workload that attacks the gateway hurts nobody: no crash, no mixed-up responses, no unbounded memory. */
import assert from "node:assert/strict";
import { AUTH, answering, eventually, exchange, inEveryLane, OK, RawClient, rawUpstream } from "./harness.ts";

const GET = `GET /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}Connection: close\r\n\r\n`;
const headers = (count: number): string => Array.from({ length: count }, (_, i) => `X-${i}: v\r\n`).join("");

const BEFORE_THE_HEAD_ENDS: Record<string, string> = {
  "another protocol": "SSH-2.0-OpenSSH_9.2\r\n",
  "an old HTTP": "HTTP/0.9 200 OK\r\n\r\n",
  "HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  "a status of letters": "HTTP/1.1 abc OK\r\n\r\n",
  "a status out of range": "HTTP/1.1 999 OK\r\n\r\n",
  "bare line feeds": "HTTP/1.1 200 OK\nContent-Length: 2\n\nok\r\n\r\n",
  "a NUL in a header": "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\nok",
  "a bare CR in a header": "HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: x\r\nContent-Length: 2\r\n\r\nok",
  "a space in a header name": "HTTP/1.1 200 OK\r\nX Y: a\r\nContent-Length: 2\r\n\r\nok",
  "a folded header": "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nok",
  "a header without a name": "HTTP/1.1 200 OK\r\n: a\r\nContent-Length: 2\r\n\r\nok",
  "two different lengths": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
  "a list of lengths": "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok",
  "a negative length": "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
  "a length in hex": "HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok",
  "a gigantic length": "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok",
  "length and chunks": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
  "an unknown encoding": "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
  "chunks twice": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  "chunks in HTTP/1.0": "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  "an unasked protocol switch": "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
  "too many headers": `HTTP/1.1 200 OK\r\n${headers(1200)}\r\n`,
  "a header bomb": `HTTP/1.1 200 OK\r\nX: ${"a".repeat(70_000)}\r\n\r\n`,
  "endless informational responses": "HTTP/1.1 102 Processing\r\n\r\n".repeat(100),
};

for (const [what, bytes] of Object.entries(BEFORE_THE_HEAD_ENDS)) {
  inEveryLane(`${what} is answered with WORKLOAD_BAD_RESPONSE`, async (start) => {
    await using up = await rawUpstream(answering(bytes));
    await using gw = await start({ upstream: up.port });
    const response = await exchange(gw.port, GET);
    assert.match(response.replace(/^(HTTP\/1\.1 102 [^\r]*\r\n\r\n)+/, ""), /^HTTP\/1\.1 502 Bad Gateway\r\n/);
    assert.match(response, /"code":"WORKLOAD_BAD_RESPONSE"/);
    assert.match(response, /\r\nX-Berth-Source: platform\r\nX-Service-Source: platform\r\n/);
    assert.equal(gw.records[0]?.error, "WORKLOAD_BAD_RESPONSE");
    assert.equal(gw.leases, 0);
  });
}

const AFTER_THE_HEAD: Record<string, string> = {
  "a chunk size of letters": "zz\r\nab\r\n",
  "a chunk size with a sign": "-1\r\nab\r\n",
  "a chunk size too large": "fffffffffffffff\r\nab\r\n",
  "a chunk longer than it says": "2\r\nabc\r\n",
  "a chunk line without an end": "1;".padEnd(5000, "x"),
  "a trailer that is none": "0\r\nno colon\r\n\r\n",
  "a trailer bomb": `0\r\nX: ${"a".repeat(20_000)}\r\n\r\n`,
};

for (const [what, bytes] of Object.entries(AFTER_THE_HEAD)) {
  inEveryLane(`${what} cuts the client off without a proper end`, async (start) => {
    await using up = await rawUpstream(
      answering(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n${bytes}`),
    );
    await using gw = await start({ upstream: up.port });
    const response = await exchange(gw.port, GET);
    assert.doesNotMatch(response, /0\r\n\r\n$/);
    assert.equal(gw.records[0]?.error, "WORKLOAD_BAD_RESPONSE");
  });
}

inEveryLane("a second response behind the first is never given to the next client", async (start) => {
  const evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL";
  await using up = await rawUpstream(answering(OK + evil));
  await using gw = await start({ upstream: up.port });
  for (let round = 0; round < 5; round += 1) {
    const response = await exchange(gw.port, GET);
    assert.match(response, /\r\n\r\nok$/);
  }
  assert.equal(up.connections.length, 5, "a connection with surplus bytes is not used again");
});

inEveryLane("a response sent to an idle connection is dropped with it", async (start) => {
  await using up = await rawUpstream(answering(OK));
  await using gw = await start({ upstream: up.port });
  await exchange(gw.port, GET);
  up.connections[0]?.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL");
  await eventually(() => up.connections[0]?.readableEnded === true, "the gateway leaves");
  assert.match(await exchange(gw.port, GET), /\r\n\r\nok$/);
  assert.equal(up.connections.length, 2);
});

inEveryLane("a cut response is not mistaken for a complete one", async (start) => {
  await using up = await rawUpstream((socket) => {
    socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"));
  });
  await using gw = await start({ upstream: up.port });
  using client = await RawClient.to(gw.port);
  client.write(GET.replace("Connection: close\r\n", ""));
  const response = await client.end();
  assert.match(response, /\r\n\r\nhalf$/);
  assert.equal(gw.records[0]?.error, "WORKLOAD_CONNECTION_CLOSED");
});

inEveryLane("a body that ends with the connection is complete", async (start) => {
  await using up = await rawUpstream((socket) => {
    socket.once("data", () => socket.end("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nall of it"));
  });
  await using gw = await start({ upstream: up.port });
  const response = await exchange(gw.port, GET);
  assert.match(response, /\r\n9\r\nall of it\r\n0\r\n\r\n$/);
  assert.equal(gw.records[0]?.error, null);
});

inEveryLane("a head that comes byte by byte is read, single-byte chunks are gathered", async (start) => {
  await using up = await rawUpstream((socket) => {
    socket.once("data", () => {
      const bytes = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(2000)}0\r\n\r\n`;
      const feed = (at: number): void => {
        if (at >= bytes.length) return;
        const step = at < 60 ? 1 : 3001;
        socket.write(bytes.slice(at, at + step));
        setImmediate(feed, at + step);
      };
      feed(0);
    });
  });
  await using gw = await start({ upstream: up.port });
  const response = await exchange(gw.port, GET);
  assert.equal(response.split("\r\n\r\n")[1]?.replace(/[^x]/g, "").length, 2000);
  assert.equal(gw.records[0]?.bytesOut, 2000);
});

inEveryLane("a workload that closes at once is told apart from one that does not listen", async (start) => {
  await using up = await rawUpstream((socket) => socket.destroy());
  await using gw = await start({ upstream: up.port });
  assert.match(await exchange(gw.port, GET), /"code":"WORKLOAD_CONNECTION_CLOSED"/);
  await using nobody = await start({ upstream: 1 });
  const response = await exchange(nobody.port, GET);
  assert.match(response, /^HTTP\/1\.1 502 [\s\S]*"code":"WORKLOAD_NOT_LISTENING"/);
  assert.equal(nobody.leases, 0);
});
