/** HTTPS with the server's own authority: HTTP/2, WebSockets over it, plain HTTP beside it, and clients that misbehave. */
import assert from "node:assert/strict";
import { createHash, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent, createServer, request as httpRequest } from "node:http";
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { request as httpsRequest } from "node:https";
import { type AddressInfo, connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, type TestContext, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { HTTP2_LIMITS } from "../../src/http/http2/http2-door.ts";
import { CertificateSigner, type Credential, makeAuthority } from "../../src/lib/x509/certificate.ts";
import { spawnBerth } from "../berth-process.ts";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { draftOf } from "../store.ts";
import { until } from "../triggers/agent-world.ts";

const [HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY] = [1, 3, 4, 6, 7] as const;

const hostsBelow = (domain: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `h${index}.${domain}`);

function frame(type: number, flags: number, stream: number, payload = Buffer.alloc(0)): Buffer {
  const start = Buffer.alloc(9);
  start.writeUIntBE(payload.length, 0, 3);
  start.writeUInt8(type, 3);
  start.writeUInt8(flags, 4);
  start.writeUInt32BE(stream, 5);
  return Buffer.concat([start, payload]);
}

suite("HTTPS and HTTP/2", () => {
  const app = createServer((req, res) => {
    let text = "";
    req.on("data", (chunk) => (text += chunk));
    req.on("end", () => res.end(`${req.method} ${req.url} ${text} ${req.headers["x-forwarded-proto"]}`));
  });
  // A WebSocket server as far as the handshake goes; it echoes bytes.
  app.on("upgrade", (req, socket) => {
    const accept = createHash("sha1").update(`${req.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: chat\r\nSec-WebSocket-Accept: ${accept.digest("base64")}\r\n\r\n`,
    );
    socket.pipe(socket);
    socket.on("error", () => socket.destroy());
  });
  let port = 0;
  const machine = new FakeMachine({ images: ["service/base-image:latest"], portOf: () => port });
  let platform: TestPlatform;
  let https: URL;
  let ca = "";

  before(async () => {
    await new Promise<void>((resolve) => app.listen(0, "127.0.0.1", resolve));
    port = (app.address() as AddressInfo).port;
    platform = await startTestPlatform({ driver: fakeDriver(machine), config: { tls: "auto" } });
    https = new URL(platform.app.listensAt);
    ca = readFileSync(join(platform.dataDir, "tls", "ca.pem"), "utf8");
    await call("POST", "/sandboxes", { metadata: { name: "box" }, spec: {} });
    const preview = { metadata: { name: "web" }, spec: { port: 3000, public: true, prefixUrl: "web" } };
    await call("POST", "/sandboxes/box/previews", preview);
  });
  after(async () => {
    await platform.stop();
    await machine.dispose();
    app.closeAllConnections();
    app.close();
  });

  /** A request over HTTP/1.1; plain on the same port when `url` says so. */
  const ask = (url: string, options: { method?: string; headers?: Record<string, string>; body?: string } = {}) =>
    new Promise<{ status: number; text: string; headers: NodeJS.Dict<string | string[]> }>((resolve, reject) => {
      const { body, ...rest } = options;
      const send = url.startsWith("https:") ? httpsRequest : httpRequest;
      const req = send(url, { ...rest, ca, agent: false }, (res) => {
        let text = "";
        res.on("data", (chunk) => (text += chunk));
        res.on("end", () => resolve({ status: res.statusCode ?? 0, text, headers: res.headers }));
      });
      req.on("error", reject).end(body);
    });
  const authorization = () => `Bearer ${platform.apiKey}`;
  const call = async (method: string, path: string, body?: object) => {
    const headers = { authorization: authorization(), "content-type": "application/json" };
    const answer = await ask(`${https.origin}/v0${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    assert.ok(answer.status < 300, answer.text);
    return JSON.parse(answer.text);
  };
  const open = (t: TestContext): ClientHttp2Session => {
    const session = connect(https.origin, { ca });
    session.on("error", () => {});
    t.after(() => session.destroy());
    return session;
  };
  const read = async (stream: ClientHttp2Stream) => {
    const [headers] = await once(stream, "response");
    let text = "";
    for await (const chunk of stream) text += chunk;
    return { status: headers[":status"] as number, text, headers };
  };
  const page = "/main/previews/web-main";

  test("the address that clients are told answers, with a certificate for every name of the machine", async () => {
    assert.equal(https.protocol, "https:");
    const made = await call("GET", "/sandboxes/box/previews/web");
    assert.ok(made.spec.url.startsWith(`${https.origin}/`), made.spec.url);
    assert.match((await ask(`${made.spec.url}/x`)).text, /^GET \/x {2}https$/);
    assert.equal((await ask(`https://localhost:${https.port}/healthz`)).status, 200);
    await assert.rejects(
      ask(`${https.origin}/healthz`, { headers: {}, ...{ servername: "other.test" } } as object),
      /altnames/,
    );
  });

  test("management and workloads answer over HTTP/2, with bodies, on one connection", async (t) => {
    const session = open(t);
    const listed = await read(session.request({ ":path": "/v0/sandboxes", authorization: authorization() }));
    assert.equal(listed.status, 200, listed.text);
    assert.match(listed.text, /"box"/);
    const post = session.request({
      ":method": "POST",
      ":path": "/v0/drives",
      authorization: authorization(),
      "content-type": "application/json",
    });
    post.end(JSON.stringify({ metadata: { name: "by-h2" }, spec: {} }));
    assert.equal((await read(post)).status, 200);
    const many = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const stream = session.request({ ":method": "PUT", ":path": `${page}/${index}` });
        stream.end(`body ${index}`);
        return (await read(stream)).text;
      }),
    );
    assert.deepEqual(
      many,
      Array.from({ length: 20 }, (_, index) => `PUT /${index} body ${index} https`),
    );
    const big = session.request({ ":method": "POST", ":path": `${page}/big` });
    big.end("x".repeat(3_000_000));
    assert.equal((await read(big)).text.length, 3_000_000 + "POST /big  https".length);
    const refused = await read(session.request({ ":path": "/v0/sandboxes" }));
    assert.equal(refused.status, 401);
    const pages = await read(session.request({ ":path": "/docs", accept: "text/html" }));
    assert.ok([200, 302, 303, 307, 308].includes(pages.status), String(pages.status));
  });

  test("a request that names two hosts, or none, is refused", async (t) => {
    const session = open(t);
    const two = session.request({ ":path": "/healthz", ":authority": "localhost", host: "other.test" });
    assert.equal((await read(two)).status, 400);
    const plainConnect = session.request({ ":method": "CONNECT", ":authority": "example.com:443" });
    assert.equal((await read(plainConnect)).status, 400);
  });

  test("a WebSocket over HTTP/2 is joined to the workload's, and refused where there is none", async (t) => {
    const session = open(t);
    await once(session, "remoteSettings");
    assert.equal(session.remoteSettings.enableConnectProtocol, true);
    const ws = (path: string) =>
      session.request(
        { ":method": "CONNECT", ":protocol": "websocket", ":path": path, "sec-websocket-version": "13" },
        { endStream: false },
      );
    const socket = ws(`${page}/chat`);
    const [headers] = await once(socket, "response");
    assert.equal(headers[":status"], 200);
    assert.equal(headers["sec-websocket-protocol"], "chat");
    assert.equal(headers["sec-websocket-accept"], undefined);
    for (const word of ["one", "two"]) {
      socket.write(word);
      assert.equal(String((await once(socket, "data"))[0]), word);
    }
    socket.close();
    assert.equal((await read(ws("/main/previews/none/chat"))).status, 404);
    assert.equal((await read(ws("/v0/sandboxes"))).status, 404);
  });

  test("plain HTTP on the port serves this machine", async () => {
    const plain = `http://127.0.0.1:${https.port}`;
    assert.equal((await ask(`${plain}/healthz`)).status, 200);
    assert.match((await ask(`${plain}${page}/y`, { method: "POST", body: "hi" })).text, /^POST \/y hi http$/);
  });

  test("a connection that says nothing or leaves at once harms nobody", async () => {
    for (let at = 0; at < 20; at += 1) {
      const socket = connectTcp({ port: Number(https.port), host: "127.0.0.1" });
      socket.on("error", () => {});
      await once(socket, "connect");
      if (at % 2 === 0) socket.end();
      else socket.resetAndDestroy();
    }
    assert.equal((await ask(`${https.origin}/healthz`)).status, 200);
  });

  test("an uploaded certificate is served for its names alone, and its key is shown to nobody", async () => {
    const spec = { status: "verified", domainType: "previews", region: "local" };
    await platform.app.store.resources.create(draftOf("customdomain", "shop.test", { spec }));
    const [now, day] = [Date.now(), 86_400_000];
    const validity = { fromMs: now - day, untilMs: now + 9 * day };
    const signer = new CertificateSigner(makeAuthority("Shop CA", validity), "Shop CA");
    const upload = (path: string, { certificate, key }: Credential) => {
      const headers = { authorization: authorization(), "content-type": "application/json" };
      const body = JSON.stringify({ certificate, privateKey: key });
      return ask(`${https.origin}/v0/customdomains/${path}/certificates`, { method: "PUT", headers, body });
    };
    const good = signer.hostCertificate("*.shop.test", validity, ["shop.test"]);
    const past = { fromMs: now - 9 * day, untilMs: now - day };
    for (const [bad, why] of [
      [signer.hostCertificate("other.test", validity), /is for other\.test/],
      [signer.hostCertificate("a.shop.test", validity, ["bigshop.test"]), /is for bigshop\.test/],
      [signer.hostCertificate("shop.test", past), /has expired/],
      [signer.hostCertificate("shop.test", { fromMs: now + day, untilMs: now + 2 * day }), /is not valid before/],
      [{ ...good, key: signer.hostCertificate("shop.test", validity).key }, /does not belong/],
      [{ ...good, certificate: "nothing" }, /must be PEM/],
      [signer.hostCertificate("shop.test", validity, hostsBelow("shop.test", 100)), /at most 100 names/],
    ] as const) {
      const { status, text } = await upload("shop.test", bad);
      assert.deepEqual([status, why.test(text)], [400, true], text);
    }
    const served = (servername: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connectTls({
          port: Number(https.port),
          host: "127.0.0.1",
          servername,
          rejectUnauthorized: false,
        });
        socket.on("error", reject);
        socket.on("secureConnect", () => {
          resolve(String(socket.getPeerCertificate().issuer.CN));
          socket.destroy();
        });
      });
    /** The server hears of a changed certificate a moment later. */
    const becomes = async (host: string, isShops: boolean): Promise<void> => {
      await until(`${host} of ${isShops ? "the shop" : "another authority"}`, async () => {
        return ((await served(host)) === "Shop CA") === isShops;
      });
    };
    assert.notEqual(await served("www.shop.test"), "Shop CA");
    const done = await upload("shop.test", good);
    assert.equal(done.status, 200, done.text);
    assert.doesNotMatch(done.text, /PRIVATE KEY/);
    assert.deepEqual(
      JSON.parse(done.text).map((one: { name: string; issuer: string; source: string }) => [
        one.name,
        one.issuer,
        one.source,
      ]),
      [
        ["*.shop.test", "CN=Shop CA", "upload"],
        ["shop.test", "CN=Shop CA", "upload"],
      ],
    );
    for (const host of ["shop.test", "www.shop.test", "WWW.shop.test"]) await becomes(host, true);
    for (const host of ["a.b.shop.test", "other.test", "localhost"])
      assert.notEqual(await served(host), "Shop CA", host);
    const more = await upload(
      "shop.test",
      signer.hostCertificate("a.shop.test", validity, hostsBelow("shop.test", 98)),
    );
    assert.deepEqual([more.status, /at most 100 names/.test(more.text)], [400, true], more.text);
    await call("DELETE", "/customdomains/shop.test/certificates");
    await becomes("www.shop.test", false);
  });

  test("berth trusts a server of its own authority once its fingerprint was given, and no other", async (t) => {
    const home = mkdtempSync(join(tmpdir(), "berth-trust-"));
    t.after(() => rmSync(home, { recursive: true, force: true }));
    const env = { HOME: home, BERTH_URL: https.origin, BERTH_API_KEY: platform.apiKey, BERTH_WORKSPACE: "main" };
    const berth = (...words: string[]) => spawnBerth(words, { env }).ended;
    const strange = await berth("sandbox", "list");
    assert.notEqual(strange.code, 0, strange.stdout);
    const { fingerprint256 } = new X509Certificate(ca);
    const unasked = await berth("trust", https.origin);
    assert.deepEqual([unasked.code, unasked.stderr.includes(fingerprint256)], [2, true], unasked.stderr);
    const wrong = await berth("trust", https.origin, "--fingerprint", fingerprint256.replaceAll(/[0-9]/g, "A"));
    assert.deepEqual([wrong.code, /another authority/.test(wrong.stderr)], [2, true], wrong.stderr);
    const done = await berth("trust", https.origin, "--fingerprint", fingerprint256.toLowerCase());
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stdout, /berth +trusts 127\.0\.0\.1:/);
    const listed = await berth("sandbox", "list");
    assert.equal(listed.code, 0, listed.stderr);
    assert.match(listed.stdout, /box/);
    const removed = await berth("trust", https.origin, "--remove");
    assert.match(removed.stdout, /berth +no longer trusts 127\.0\.0\.1:/, removed.stderr);
    assert.notEqual((await berth("sandbox", "list")).code, 0, "the server is strange again");
    assert.match((await berth("trust", https.origin, "--remove")).stdout, /did not trust/);
  });

  test("header lists beyond the limit, and more streams than allowed, are refused", async (t) => {
    const session = open(t);
    await once(session, "remoteSettings");
    assert.equal(session.remoteSettings.maxConcurrentStreams, HTTP2_LIMITS.streams);
    // The bodies that one connection leaves unread at the server stay within 32 MB.
    assert.ok((session.remoteSettings.initialWindowSize ?? 0) * HTTP2_LIMITS.streams <= 32 * 1024 * 1024);
    const fields = Object.fromEntries(
      Array.from({ length: HTTP2_LIMITS.headerFields + 10 }, (_, at) => [`x-${at}`, "v"]),
    );
    const stream = session.request({ ":path": "/healthz", ...fields });
    const [error] = await once(stream, "error");
    assert.match(String(error), /ENHANCE_YOUR_CALM|PROTOCOL_ERROR|REFUSED/);
  });

  /** Sends frames without an HTTP/2 client of Node, which would not; resolves with the error code of the server's GOAWAY. */
  const flooded = (frames: Buffer): Promise<number> =>
    new Promise((resolve, reject) => {
      const socket = connectTls({ port: Number(https.port), host: "127.0.0.1", ca, ALPNProtocols: ["h2"] });
      let received = Buffer.alloc(0);
      socket.on("data", (chunk: Buffer) => {
        received = Buffer.concat([received, chunk]);
      });
      socket.on("error", () => {});
      socket.on("close", () => {
        for (let at = 0; at + 9 <= received.length; at += 9 + received.readUIntBE(at, 3))
          if (received[at + 3] === GOAWAY) return resolve(received.readUInt32BE(at + 9 + 4));
        reject(new Error("closed without GOAWAY"));
      });
      socket.write(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(SETTINGS, 0, 0), frames]));
    });
  const repeated = (count: number, make: (index: number) => Buffer): Buffer =>
    Buffer.concat(Array.from({ length: count }, (_, index) => make(index)));
  // GET https / in HPACK's static table, and the authority "localhost".
  const head = Buffer.concat([Buffer.from([0x82, 0x87, 0x84, 0x41, 9]), Buffer.from("localhost")]);

  for (const [what, frames] of Object.entries({
    "rapid resets": repeated(3000, (index) =>
      Buffer.concat([
        frame(HEADERS, 0x5, index * 2 + 1, head),
        frame(RST_STREAM, 0, index * 2 + 1, Buffer.from([0, 0, 0, 8])),
      ]),
    ),
    pings: repeated(3000, () => frame(PING, 0, 0, Buffer.alloc(8))),
    settings: repeated(3000, () => frame(SETTINGS, 0, 0)),
  }))
    test(`a flood of ${what} ends the connection`, async () => {
      // Node's library counts resets itself, and ends with another code.
      const codes: number[] = [constants.NGHTTP2_ENHANCE_YOUR_CALM, constants.NGHTTP2_INTERNAL_ERROR];
      assert.ok(codes.includes(await flooded(frames)));
      assert.equal((await ask(`${https.origin}/healthz`)).status, 200);
    });
});

/** Shorter than a server keeps an idle connection, and far longer than a stop takes. */
const STOP_MS = 45_000;

test("a server stops although a program of this machine keeps a plain connection open", async (t) => {
  const platform = await startTestPlatform({ config: { tls: "auto" } });
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const { port } = new URL(platform.app.listensAt);
  const [answer] = await once(httpRequest(`http://127.0.0.1:${port}/healthz`, { agent }).end(), "response");
  await once(answer.resume(), "end");
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`the server has not stopped within ${STOP_MS} ms`)), STOP_MS).unref();
  });
  await Promise.race([platform.stop(), late]);
});
