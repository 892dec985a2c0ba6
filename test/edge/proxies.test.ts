/** Proxies that the operator names by address: whose word about a client is believed, by fields and by PROXY headers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { suite, test } from "node:test";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { startTestPlatform, TEST_KEY, type TestPlatform } from "../platform.ts";

const PROXY = "127.0.0.11";
const SOMEBODY = "127.0.0.12";
const HEADER = "PROXY TCP4 203.0.113.7 127.0.0.1 4711 443\r\n";
const CLAIM = "X-Forwarded-For: 198.51.100.1\r\n";
let made = 0;

function creation(fields = ""): string {
  made += 1;
  const spec = { type: "maxToken", maxTokens: { total: 10 } };
  const body = JSON.stringify({ metadata: { name: `p-${made}` }, spec });
  const head = `POST /v0/policies HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: Bearer ${TEST_KEY}\r\nContent-Type: application/json\r\n`;
  return `${head}${fields}Content-Length: ${body.length}\r\n\r\n${body}`;
}

const tcp = (platform: TestPlatform, localAddress: string): Socket =>
  connect({ host: "127.0.0.1", port: Number(new URL(platform.app.listensAt).port), localAddress });

async function ask(socket: Socket | TLSSocket, ...parts: string[]): Promise<string> {
  socket.on("error", () => {});
  for (const part of parts) {
    socket.write(part);
    await new Promise(setImmediate);
  }
  return await text(socket).catch(() => "");
}

/** Plain HTTP is for programs of this machine, beside HTTPS too. */
async function lastAddress(platform: TestPlatform): Promise<string> {
  const headers = { authorization: `Bearer ${TEST_KEY}` };
  const { port } = new URL(platform.app.listensAt);
  const answer = await fetch(`http://127.0.0.1:${port}/v0/audit?limit=1`, { headers });
  const [last] = ((await answer.json()) as { data: { sourceAddress: string }[] }).data;
  return last?.sourceAddress ?? "";
}

suite("proxies by address", () => {
  test("X-Forwarded-For of a named proxy is believed, of nobody else, on both ways into the server", async () => {
    await using platform = await startTestPlatform({ config: { trusted_proxies: `${PROXY}, 10.0.0.0/8` } });
    const chunked = (fields: string): string =>
      creation(`${fields}Transfer-Encoding: chunked\r\n`)
        .replace(/Content-Length: \d+\r\n/, "")
        .replace(/\r\n\r\n(.*)$/, (_, body: string) => `\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
    for (const request of [creation, chunked]) {
      assert.match(await ask(tcp(platform, PROXY), request(CLAIM)), /^HTTP\/1\.1 200 /);
      assert.equal(await lastAddress(platform), "198.51.100.1");
      assert.match(await ask(tcp(platform, SOMEBODY), request(CLAIM)), /^HTTP\/1\.1 200 /);
      assert.equal(await lastAddress(platform), SOMEBODY);
    }
    assert.match(await ask(tcp(platform, PROXY), HEADER + creation()), /^HTTP\/1\.1 400 /, "no PROXY headers");
  });

  test("a PROXY header names the client, over HTTP, HTTPS and HTTP/2", async () => {
    for (const tls of [{}, { tls: "auto" }]) {
      await using platform = await startTestPlatform({
        config: { trusted_proxies: PROXY, proxy_protocol: "true", ...tls },
      });
      const isTls = "tls" in tls;
      const through = (socket: Socket): Socket | TLSSocket =>
        isTls ? connectTls({ socket, rejectUnauthorized: false }) : socket;
      const whole = tcp(platform, PROXY);
      whole.write(HEADER);
      assert.match(await ask(through(whole), creation(CLAIM)), /^HTTP\/1\.1 200 /);
      assert.equal(await lastAddress(platform), "203.0.113.7", "and the client's own claim is not believed");
      const direct = tcp(platform, SOMEBODY);
      assert.match(await ask(through(direct), creation()), /^HTTP\/1\.1 200 /);
      assert.equal(await lastAddress(platform), SOMEBODY, "others connect without a header");
      if (isTls) assert.equal(await overHttp2(platform), "203.0.113.7");
      else {
        const pieces = [...HEADER, creation()];
        assert.match(await ask(tcp(platform, PROXY), ...pieces), /^HTTP\/1\.1 200 /);
        assert.equal(await lastAddress(platform), "203.0.113.7", "byte by byte");
      }
    }
  });

  test("a proxy without a header, and anybody else with one, get no answer", async () => {
    await using platform = await startTestPlatform({
      config: { trusted_proxies: PROXY, proxy_protocol: "true" },
    });
    assert.equal(await ask(tcp(platform, PROXY), creation()), "");
    assert.equal(await ask(tcp(platform, PROXY), `PROXY UNKNOWN ${"x".repeat(10_000)}`), "");
    const half = tcp(platform, PROXY);
    half.end("PROXY TCP4 203.0.113.7");
    assert.equal(await ask(half), "");
    assert.match(await ask(tcp(platform, SOMEBODY), HEADER + creation()), /^HTTP\/1\.1 400 /);
    assert.match(await ask(tcp(platform, PROXY), `PROXY UNKNOWN\r\n${creation()}`), /^HTTP\/1\.1 200 /);
    assert.equal(await lastAddress(platform), PROXY, "a proxy may speak for itself");
  });
});

async function overHttp2(platform: TestPlatform): Promise<string> {
  const socket = tcp(platform, PROXY);
  socket.write(HEADER);
  const secure = connectTls({ socket, rejectUnauthorized: false, ALPNProtocols: ["h2"] });
  await once(secure, "secureConnect");
  const session = connectHttp2("https://h", { createConnection: () => secure });
  made += 1;
  const stream = session.request({
    ":method": "POST",
    ":path": "/v0/policies",
    authorization: `Bearer ${TEST_KEY}`,
    "content-type": "application/json",
  });
  stream.end(JSON.stringify({ metadata: { name: `p-${made}` }, spec: { type: "maxToken", maxTokens: { total: 10 } } }));
  const [headers] = await once(stream, "response");
  assert.equal(headers[":status"], 200, await text(stream));
  session.destroy();
  return lastAddress(platform);
}
