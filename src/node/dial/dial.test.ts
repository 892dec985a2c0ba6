import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { dial } from "./dial.ts";
import type { UnixEndpoint } from "./endpoint.ts";

async function place(t: TestContext): Promise<UnixEndpoint> {
  const dir = mkdtempSync(join(tmpdir(), "dial-"));
  t.after(() => rmSync(dir, { recursive: true }));
  return { kind: "unix", node: "n", dir };
}

async function listen(t: TestContext, path: string, onSocket: (socket: Socket) => void): Promise<Server> {
  const server = createServer(onSocket).listen(path);
  await once(server, "listening");
  t.after(() => server.close());
  return server;
}

test("the port door passes the answer line and keeps the payload behind it", async (t) => {
  const endpoint = await place(t);
  await listen(t, join(endpoint.dir, "ports.sock"), (socket) => {
    socket.once("data", (line) => {
      assert.equal(line.toString(), "PORT 3000\n");
      socket.write("O");
      setImmediate(() => socket.end("K\nhello"));
    });
  });
  const stream = await dial(endpoint, 3000);
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  assert.equal(Buffer.concat(chunks).toString(), "hello");
});

test("a refused port says why", async (t) => {
  const endpoint = await place(t);
  await listen(t, join(endpoint.dir, "ports.sock"), (socket) => socket.end("ERR nothing listens there\n"));
  await assert.rejects(dial(endpoint, 3000), { code: "bad_gateway", message: "Port 3000: nothing listens there" });
});

test("an endless answer line is cut off", async (t) => {
  const endpoint = await place(t);
  await listen(t, join(endpoint.dir, "ports.sock"), (socket) => {
    socket.on("error", () => {}); // the dialler hangs up on us: that is the point
    socket.write("x".repeat(10_000));
  });
  await assert.rejects(dial(endpoint, 1), { code: "bad_gateway" });
});

test("a symbolic link in place of the socket is not followed", async (t) => {
  const endpoint = await place(t);
  const other = await place(t);
  let reached = false;
  await listen(t, join(other.dir, "api.sock"), () => {
    reached = true;
  });
  symlinkSync(join(other.dir, "api.sock"), join(endpoint.dir, "api.sock"));
  await assert.rejects(dial(endpoint, "api"), { code: "bad_gateway" });
  assert.equal(reached, false);
});

test("a silent door is left when the signal says so", async (t) => {
  const endpoint = await place(t);
  const accepted: Socket[] = [];
  await listen(t, join(endpoint.dir, "ports.sock"), (socket) => accepted.push(socket));
  const controller = new AbortController();
  const dialling = dial(endpoint, 80, { signal: controller.signal });
  controller.abort(new Error("enough"));
  await assert.rejects(dialling, /enough/);
  for (const socket of accepted) socket.destroy();
});
