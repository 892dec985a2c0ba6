/** The fast lane in front of Node's server: who serves what, and that changing over loses nothing. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer as createTlsServer, get } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { duplexPair } from "node:stream";
import { test } from "node:test";
import { attachGateway, SERVER_OPTIONS } from "../../src/http/attach.ts";
import {
  AUTH,
  answering,
  eventually,
  inBothLanes,
  listen,
  OK,
  RawClient,
  rawUpstream,
  startTestGateway,
} from "./harness.ts";

const GET = `GET /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}\r\n`;
const MANAGEMENT = "GET /v0/x HTTP/1.1\r\nHost: h\r\n\r\n";
/** Node's server announces how long it keeps a connection; the lane does not. */
const byNode = (response: string): boolean => /\r\nKeep-Alive: timeout=/.test(response);

test("plain requests stay in the lane; management moves the connection, which then stays", async () => {
  await using up = await rawUpstream(answering(OK));
  await using gw = await startTestGateway({ upstream: up.port });
  using client = await RawClient.to(gw.port);
  const ask = async (request: string, end: string): Promise<string> => {
    const before = client.received.length;
    client.write(request);
    return (await client.until((text) => text.slice(before).endsWith(end))).slice(before);
  };
  assert.equal(byNode(await ask(GET, "ok")), false);
  assert.equal(byNode(await ask(GET, "ok")), false);
  assert.equal(byNode(await ask(MANAGEMENT, "management")), true);
  assert.equal(byNode(await ask(GET, "ok")), true);
});

test("requests sent ahead are answered in order across the change", async () => {
  await using up = await rawUpstream((socket, received) => {
    socket.on("data", () => {
      if (received().endsWith("body")) socket.write(OK.replace("ok", "P!"));
      else if (received().endsWith("\r\n\r\n") && !received().includes("POST")) socket.write(OK);
    });
  });
  await using gw = await startTestGateway({ upstream: up.port });
  using client = await RawClient.to(gw.port);
  const post = `POST /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}Content-Length: 4\r\n\r\nbody`;
  client.write(`${GET}${post}${MANAGEMENT}`);
  const all = await client.until((text) => text.endsWith("management"));
  assert.deepEqual(all.match(/\r\n\r\n(ok|P!|management)/g), ["\r\n\r\nok", "\r\n\r\nP!", "\r\n\r\nmanagement"]);
});

test("a body in many pieces", async () => {
  await using up = await rawUpstream((socket, received) => {
    socket.on("data", () => {
      if (received().endsWith("end")) socket.write(OK);
    });
  });
  await using gw = await startTestGateway({ upstream: up.port });
  using client = await RawClient.to(gw.port);
  client.socket.setNoDelay(true);
  const head = `POST /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}Content-Length: 30003\r\n\r\n`;
  client.write(head);
  for (let i = 0; i < 10; i += 1) {
    client.write("x".repeat(3000));
    await eventually(() => (up.received[0]?.match(/x{10}/g)?.length ?? 0) >= 300 * (i + 1), "the piece arrives");
  }
  client.write("end");
  await client.until((text) => text.endsWith("ok"));
});

test("a head that does not come at once is for Node, with nothing lost", async () => {
  await using up = await rawUpstream(answering(OK));
  await using gw = await startTestGateway({ upstream: up.port });
  using client = await RawClient.to(gw.port);
  const long = `GET /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}X: ${"y".repeat(60_000)}\r\n\r\n`;
  client.socket.setNoDelay(true);
  for (let at = 0; at < long.length; at += 1000) {
    client.write(long.slice(at, at + 1000));
    await new Promise(setImmediate);
  }
  assert.equal(byNode(await client.until((text) => text.endsWith("ok"))), true);
  assert.ok(up.received[0]?.includes(`X: ${"y".repeat(60_000)}\r\n`));
});

inBothLanes("a stream that is no socket may be fed to the server", async (start) => {
  await using up = await rawUpstream(answering(OK));
  await using gw = await start({ upstream: up.port });
  const [ours, theirs] = duplexPair();
  gw.server.emit("connection", theirs);
  ours.write(GET);
  let text = "";
  for await (const chunk of ours) {
    text += chunk;
    if (text.endsWith("ok")) break;
  }
  assert.match(text, /^HTTP\/1\.1 200 OK/);
});

inBothLanes("a client that stops speaking has stopped listening", async (start) => {
  await using up = await rawUpstream(() => {});
  await using gw = await start({ upstream: up.port });
  const socket = connect({ port: gw.port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  socket.end(GET);
  const record = gw.nextRecord();
  socket.resume();
  assert.equal((await record).clientGone, true);
  socket.destroy();
});

inBothLanes("closing the server ends idle connections and lets running requests finish", async (start) => {
  await using up = await rawUpstream(answering((head) => (head.includes("/slow") ? null : OK)));
  await using gw = await start({ upstream: up.port });
  using idle = await RawClient.to(gw.port);
  idle.write(GET);
  await idle.until((text) => text.endsWith("ok"));
  using busy = await RawClient.to(gw.port);
  busy.write(GET.replace("/a ", "/a/slow "));
  await eventually(() => up.received.join("").includes("/slow"), "the slow one runs");
  const closed = once(gw.server, "close");
  gw.server.close();
  const stopped = gw.gateway.stop(60_000);
  await idle.end();
  up.connections.find((_, i) => up.received[i]?.includes("/slow"))?.write(OK);
  const response = await busy.end();
  assert.match(response, /\r\nConnection: close\r\n[\s\S]*ok$/);
  await Promise.all([closed, stopped]);
});

inBothLanes("a client that keeps sending after an early answer is cut off in the end", async (start) => {
  await using up = await rawUpstream(answering("HTTP/1.1 413 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
  await using gw = await start({ upstream: up.port });
  using client = await RawClient.to(gw.port);
  client.write(`POST /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}Content-Length: 99999999\r\n\r\nx`);
  await client.until((text) => text.includes("413"));
  const block = "x".repeat(256 * 1024);
  while (!client.closed) {
    client.write(block);
    await new Promise(setImmediate);
  }
});

test("the lane also serves TLS", { skip: hasOpenssl() ? false : "openssl is not installed" }, async () => {
  const dir = mkdtempSync(join(tmpdir(), "berth-tls-"));
  const [keyFile, certFile] = [join(dir, "key.pem"), join(dir, "cert.pem")];
  const args = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "1"];
  execFileSync("openssl", [...args, "-keyout", keyFile, "-out", certFile], { stdio: "ignore" });
  await using up = await rawUpstream(answering(OK));
  await using gw = await startTestGateway({ upstream: up.port });
  const server = createTlsServer({ ...SERVER_OPTIONS, key: readFileSync(keyFile), cert: readFileSync(certFile) });
  attachGateway(server, gw.gateway, { request: (_, res) => res.end("management") });
  const port = await listen(server);
  const ask = (path: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: "Bearer good" };
      get({ port, path, headers, rejectUnauthorized: false, agent: false }, (res) => {
        let text = "";
        res.on("data", (chunk) => {
          text += chunk;
        });
        res.on("end", () => resolve(text));
      }).on("error", reject);
    });
  assert.equal(await ask("/ws/agents/a"), "ok");
  assert.equal(await ask("/v0/x"), "management");
  assert.match(up.received[0] ?? "", /\r\nX-Forwarded-Proto: https\r\n/);
  server.close();
  server.closeAllConnections();
  rmSync(dir, { recursive: true });
});

function hasOpenssl(): boolean {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
