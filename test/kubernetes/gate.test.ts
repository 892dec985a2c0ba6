/** The gate of the real daemon: who has the token of this workload comes in, and nobody else is answered. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { OUTPUT_SIZE_HEADER } from "../../src/contract/sandbox-wire.ts";
import { openGate } from "../../src/lib/network/gate/handshake.ts";
import { call } from "../../src/node/conformance/call.ts";
import { dial } from "../../src/node/dial/dial.ts";
import type { TcpEndpoint } from "../../src/node/dial/endpoint.ts";
import { askControl } from "../../src/node/drivers/common/control.ts";
import { freePort } from "../free-port.ts";
import { eventually, skip, startSandboxd } from "../sandboxd-harness.ts";

const TOKEN = "0123456789abcdef";

async function listening(onSocket: (socket: Socket) => void) {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => socket.destroy());
    open.add(socket);
    onSocket(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      server.close();
      for (const socket of open) socket.destroy();
      await once(server, "close");
    },
  };
}

/** Everything that the other side says to these bytes until it hangs up. */
async function said(port: number, send: (hello: string) => string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  let text = "";
  socket.on("data", (chunk) => {
    if (text === "") socket.write(send(chunk.toString()));
    text += chunk;
  });
  await once(socket, "close");
  return text.replace(/^BERTH [0-9a-f]{32}\n/, "");
}

test("the gate of a daemon", { skip }, async (t) => {
  const doors: string[] = [];
  await using platform = await listening(async (socket) => {
    const entered = await openGate(socket, (purpose) => (purpose === "platform:box" ? "door-token" : null));
    if (!entered) return void socket.destroy();
    doors.push(entered.purpose);
    entered.accept();
    socket.end(`door ${entered.rest}`);
  });
  const [port, door, stranger] = [await freePort(), await freePort(), await freePort()];
  const remote = { host: "127.0.0.1", port: platform.port, token: "door-token" };
  await using d = await startSandboxd({
    mode: "init",
    env: { SANDBOXD_ADDRESS: "127.0.0.1" },
    config: (folder) => ({
      gate: { port, token: TOKEN },
      doors: [
        { listen: `127.0.0.1:${door}`, remote: { ...remote, purpose: "platform:box" } },
        { listen: `127.0.0.1:${stranger}`, remote: { ...remote, purpose: "platform:other" } },
      ],
      processLogs: { stdout: join(folder, "out"), stderr: join(folder, "err") },
    }),
  });
  const endpoint: TcpEndpoint = { kind: "tcp", node: "n", host: "127.0.0.1", port, token: TOKEN };

  await t.test("leads to the API, to the control socket and to ports", async () => {
    assert.equal((await call({ endpoint }, "/health")).status, 200);
    assert.equal((await call({ endpoint }, "/activity", { socket: "control" })).status, 200);
    await using echo = await listening(async (socket) => {
      for await (const chunk of socket) socket.write(`got ${chunk}`);
      socket.end();
    });
    const stream = await dial(endpoint, echo.port);
    stream.end("hello");
    let text = "";
    for await (const chunk of stream) text += chunk;
    assert.equal(text, "got hello");
    await assert.rejects(dial(endpoint, 1), { code: "bad_gateway", message: /Port 1: nothing listens/ });
  });

  await t.test("answers nothing without a proof", async () => {
    for (const line of [
      () => "GET /health HTTP/1.1\r\nHost: x\r\n\r\n",
      () => "PORT 22\n",
      () => `api ${"0".repeat(32)} ${"0".repeat(64)}\n`,
      (hello: string) => `api ${hello.slice(6, 38)} ${TOKEN}\n`,
      () => `${"x".repeat(5000)}\n`,
    ])
      assert.equal(await said(port, line), "");
    await assert.rejects(dial({ ...endpoint, token: `${TOKEN}0` }, "api"), { code: "bad_gateway" });
    await assert.rejects(dial(endpoint, "else" as "api"), { code: "bad_gateway" });
  });

  await t.test("does not speak to a stranger that took the workload's address", async () => {
    let heard = "";
    await using impostor = await listening((socket) => {
      socket.write(`BERTH ${"a".repeat(32)}\n`);
      socket.on("data", (chunk) => {
        heard += chunk;
        socket.write(`OK ${"b".repeat(64)}\n`);
      });
    });
    await assert.rejects(dial({ ...endpoint, port: impostor.port }, "api"), { message: /not the workload/ });
    assert.ok(heard.startsWith("api ") && !heard.includes(TOKEN));
  });

  await t.test("output and figures can be asked for", async () => {
    await d.exec("echo 0123456789");
    const read = () => askControl(endpoint, "/output/stdout?offset=3&bytes=4", undefined, 100);
    await eventually(async () => (await read()).headers[OUTPUT_SIZE_HEADER] === "11");
    assert.equal((await read()).bytes.toString(), "3456");
    const stats = JSON.parse((await call({ endpoint }, "/stats", { socket: "control" })).text);
    assert.ok(stats.memoryBytes > 0 && stats.cpuMs >= 0 && stats.pids >= 1, JSON.stringify(stats));
  });

  await t.test("keeps the token from processes and their environment", async () => {
    const { stdout } = (await d.exec("env; cat /proc/self/environ")).json;
    for (const secret of [TOKEN, "door-token", "SANDBOXD_ADDRESS"]) assert.ok(!stdout.includes(secret), secret);
  });

  await t.test("the doors reach the platform with a proof of their own, and no further without", async () => {
    const through = connect(door, "127.0.0.1");
    through.write("hi");
    const [answer] = await once(through, "data");
    assert.match(String(answer), /^door/);
    through.destroy();
    const refused = connect(stranger, "127.0.0.1").on("error", () => {});
    await once(refused, "close");
    assert.ok(!doors.includes("platform:other"));
  });

  await t.test("the platform can end everything", async () => {
    const exited = once(d.process, "exit");
    // The answer may be lost with the daemon that gave it.
    await askControl(endpoint, "/end", { graceMs: 0 }, 100).catch(() => {});
    await exited;
  });
});
