/** Edge processes with HTTPS: HTTP/2, certificates of domains, plain HTTP beside it, and clients behind a named proxy. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, renameSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, suite, test } from "node:test";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { WebSocket } from "ws";
import { CertificateSigner, makeAuthority } from "../../src/lib/x509/certificate.ts";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";
import { startRealtime } from "../models/realtime-server.ts";
import { caller, startTestPlatform, type TestPlatform } from "../platform.ts";
import { eventually } from "../sandboxd-harness.ts";
import { until } from "../triggers/agent-world.ts";

const PROXY = "127.0.0.11";
const HEADER = "PROXY TCP4 203.0.113.7 127.0.0.1 4711 443\r\n";
const PATH = "/main/sandboxes/box/port/3000/x";

suite("edge processes with TLS", () => {
  /** Requests to /hold wait here. */
  const waiting: ServerResponse[] = [];
  const app = createServer((req, res) => {
    if (req.url === "/hold") return void waiting.push(res);
    res.end(`${req.url} ${req.headers["x-forwarded-proto"]} ${req.headers["x-forwarded-for"]}`);
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
  let ca = "";
  let port = 0;

  before(async () => {
    app.listen(0, "127.0.0.1");
    await once(app, "listening");
    appPort = (app.address() as AddressInfo).port;
    const config = { edge_processes: "2", tls: "auto", proxy_protocol: "true", trusted_proxies: PROXY };
    platform = await startTestPlatform({ driver: fakeDriver(machine), config });
    port = Number(new URL(platform.app.listensAt).port);
    ca = readFileSync(join(platform.dataDir, "tls", "ca.pem"), "utf8");
    // Plain HTTP on the port of HTTPS, which the server takes from its own machine.
    const call = caller(`http://127.0.0.1:${port}`);
    const made = await call("POST", "/sandboxes", { body: { metadata: { name: "box" }, spec: {} } });
    assert.equal(made.status, 200, JSON.stringify(made.body));
  });
  after(async () => {
    await platform?.stop();
    await machine.dispose();
    app.closeAllConnections();
    app.close();
  });

  const authorization = () => `Bearer ${platform.apiKey}`;
  const head = (path: string): string =>
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: ${authorization()}\r\n\r\n`;

  test("HTTP/2 reaches workloads and the management API", async (t) => {
    const session = connectHttp2(`https://127.0.0.1:${port}`, { ca });
    t.after(() => session.destroy());
    const ask = async (path: string): Promise<string> => {
      const stream = session.request({ ":path": path, authorization: authorization() });
      const [headers] = await once(stream, "response");
      return `${headers[":status"]} ${await text(stream)}`;
    };
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask(PATH)));
    assert.deepEqual([...new Set(answers)], ["200 /x https 127.0.0.1"]);
    assert.match(await ask("/v0/sandboxes/box"), /^200 .*"box"/);
    assert.match(await ask("/healthz"), /^200 /);
  });

  test("a realtime session with a model goes through an edge process, over HTTP/1.1 and HTTP/2", async (t) => {
    await using provider = await startRealtime();
    const call = caller(`http://127.0.0.1:${port}`);
    const made = async (path: string, name: string, spec: object): Promise<void> => {
      const { status, body } = await call("POST", path, { body: { metadata: { name }, spec } });
      assert.equal(status, 200, JSON.stringify(body));
    };
    const config = { baseUrl: provider.baseUrl };
    await made("/integrations/connections", "own", { integration: "openai", secret: { apiKey: "k" }, config });
    const runtime = { type: "openai", model: "gpt-realtime" };
    await made("/models", "voice", { runtime, integrationConnections: ["own"] });
    const say = JSON.stringify({ type: "response.create" });
    const paths = ["/main/models/voice/v1/realtime", "/openai/v1/realtime?model=main/voice"];

    for (const path of paths) {
      const socket = new WebSocket(`wss://127.0.0.1:${port}${path}`, {
        ca,
        headers: { authorization: authorization() },
      });
      t.after(() => socket.terminate());
      let heard = "";
      socket.on("message", (data) => (heard += data));
      await eventually(() => heard.includes("session.created"), "the session");
      socket.send(say);
      await eventually(() => heard.includes("response.done"), "the response");
      socket.close(1000);
      assert.equal((await once(socket, "close"))[0], 1000);
    }

    const session = connectHttp2(`https://127.0.0.1:${port}`, { ca });
    t.after(() => session.destroy());
    await once(session, "remoteSettings");
    for (const path of paths) {
      const stream = session.request(
        {
          ...{ ":method": "CONNECT", ":protocol": "websocket", ":scheme": "https", ":path": path },
          ...{ ":authority": `127.0.0.1:${port}`, authorization: authorization(), "sec-websocket-version": "13" },
        },
        { endStream: false },
      );
      const [headers] = await once(stream, "response");
      assert.equal(headers[":status"], 200);
      let heard = "";
      stream.on("data", (chunk) => (heard += chunk));
      await eventually(() => heard.includes("session.created"), "the session");
      stream.write(clientFrame(1, Buffer.from(say)));
      await eventually(() => heard.includes("response.done"), "the response");
      stream.write(clientFrame(8, Buffer.from([3, 232])));
      stream.end();
      await once(stream, "close");
    }
    await eventually(() => provider.sockets.size === 0, "the end of the sessions at the provider");
    await until("all responses are counted", async () => {
      const { body } = await call("GET", "/models/voice/requests");
      return JSON.stringify(body).match(/"outputTokens":121/g)?.length === 2 * paths.length;
    });
  });

  test("new processes take the place of old ones, and no TLS or HTTP/2 connection is dropped", async (t) => {
    const HELD = PATH.replace(/x$/, "hold");
    const old = platform.app.edgePids();
    const h2 = () => {
      const session = connectHttp2(`https://127.0.0.1:${port}`, { ca });
      t.after(() => session.destroy());
      return session;
    };
    const asked = async (session: ClientHttp2Session, path: string): Promise<string> => {
      const stream = session.request({ ":path": path, authorization: authorization() });
      const [headers] = await once(stream, "response");
      return `${headers[":status"]} ${await text(stream)}`;
    };
    const sessions = Array.from({ length: 4 }, h2);
    const held = sessions.map((session) => asked(session, HELD));
    const secure = async (more: string): Promise<TLSSocket> => {
      const socket = connectTls({ port, host: "127.0.0.1", servername: "localhost", ca });
      t.after(() => socket.destroy());
      socket.write(`GET ${PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${authorization()}\r\n${more}\r\n`);
      return socket;
    };
    const heard = async (socket: TLSSocket): Promise<string> => String((await once(socket, "data"))[0]);
    const idle = await secure("");
    assert.match(await heard(idle), /^HTTP\/1\.1 200 /);
    const webSocket = await secure("Connection: Upgrade\r\nUpgrade: websocket\r\n");
    assert.match(await heard(webSocket), /^HTTP\/1\.1 101 /);
    await eventually(() => waiting.length === sessions.length, "requests are open");

    await platform.app.restartEdges();
    assert.ok(!platform.app.edgePids().some((pid) => old.includes(pid)));
    assert.match(await asked(h2(), PATH), /^200 \/x https/, "a new session");
    // A session that has a request open is told to end with it.
    const closed = Promise.all(sessions.map((session) => once(session, "close")));
    for (const response of waiting) response.end("late");
    assert.deepEqual([...new Set(await Promise.all(held))], ["200 late"]);
    await closed;
    idle.write(head(PATH));
    assert.match(await heard(idle), /^HTTP\/1\.1 200 [\s\S]*connection: close/i, "it ends with an answer, not before");
    webSocket.write("echo");
    assert.equal(await heard(webSocket), "echo");
  });

  test("a PROXY header of the named proxy names the client, in front of TLS too", async () => {
    const behind = connect({ host: "127.0.0.1", port, localAddress: PROXY });
    behind.write(HEADER);
    const secure = connectTls({ socket: behind, ca, servername: "localhost" });
    secure.write(head(PATH));
    assert.match(await text(secure), /\/x https 203\.0\.113\.7/);
  });

  test("all processes show one certificate, which the owner made: the authority's key is the owner's alone", async () => {
    const shown = async (): Promise<string> => {
      const socket: TLSSocket = connectTls({ port, host: "127.0.0.1", servername: "localhost", ca });
      await once(socket, "secureConnect");
      const { fingerprint256 } = socket.getPeerCertificate();
      socket.destroy();
      return fingerprint256;
    };
    renameSync(join(platform.dataDir, "tls"), join(platform.dataDir, "tls-away"));
    const before = platform.app.edgePids();
    for (const pid of before) process.kill(pid, "SIGKILL");
    await until("other processes", () => !platform.app.edgePids().some((pid) => before.includes(pid)));
    const seen = await Promise.all(Array.from({ length: 16 }, shown));
    assert.equal(new Set(seen).size, 1, seen.join(" "));
  });

  test("a certificate of a domain is shown by every process once the server has it", async () => {
    const host = "shop.example.test";
    const validity = { fromMs: Date.now() - 1000, untilMs: Date.now() + 3_600_000 };
    const authority = makeAuthority("an authority of the test", validity);
    const { certificate: chain, key } = new CertificateSigner(authority, "an authority of the test").hostCertificate(
      host,
      validity,
    );
    const { store } = platform.app;
    const times = { notBefore: validity.fromMs, notAfter: validity.untilMs, renewAt: 0 };
    await store.certificates.put([host], { domainUid: "none", source: "upload", chain, key, ...times });
    const shown = (): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket: TLSSocket = connectTls({ port, host: "127.0.0.1", servername: host, rejectUnauthorized: false });
        socket.on("error", reject).on("secureConnect", () => {
          resolve(String(socket.getPeerCertificate().subject.CN));
          socket.destroy();
        });
      });
    await until("the certificate at every process", async () => {
      const names = await Promise.all(Array.from({ length: 8 }, shown));
      return names.every((name) => name === host);
    });
  });
});

/** A short frame of a WebSocket's client, with a mask of zeros. */
const clientFrame = (opcode: number, payload: Buffer): Buffer =>
  Buffer.concat([Buffer.from([0x80 | opcode, 0x80 | payload.length, 0, 0, 0, 0]), payload]);
