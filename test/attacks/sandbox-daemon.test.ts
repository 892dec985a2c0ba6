/** Floods from inside a sandbox at the listeners of its own daemon: the daemon keeps serving, and so does the platform. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { DOOR_CONNECTIONS_MAX, HALF_OPEN_MAX } from "../../src/contract/sandbox-wire.ts";
import { freePort } from "../free-port.ts";
import { eventually, skip, startSandboxd, type TestDaemon } from "../sandboxd-harness.ts";

/** Descriptors that the daemon may open meanwhile for work of its own. */
const SOME = 20;

/** Connections that send a beginning and no more, and never close by themselves. */
async function flood(to: { path: string } | { port: number; host: string }, count: number, text: string) {
  const sockets: Socket[] = [];
  for (let n = 0; n < count; n += 1) {
    const socket = connect({ ...to, allowHalfOpen: true });
    socket.on("error", () => {});
    sockets.push(socket);
    await Promise.race([once(socket, "connect"), once(socket, "close")]).catch(() => {});
    socket.write(text);
  }
  return {
    [Symbol.dispose]: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** What the daemon itself holds open, whatever the other side does. */
const heldBy = ({ process }: TestDaemon): number => readdirSync(`/proc/${process.pid}/fd`).length;

test("half-open connections to the daemon's sockets are bounded, and it serves", { skip }, async () => {
  await using d = await startSandboxd();
  for (const socket of ["api", "control"] as const) {
    const path = socket === "api" ? d.config.apiSocket : d.config.controlSocket;
    const asked = socket === "api" ? "/health" : "/activity";
    // A client that came back is no newcomer, however many come after it.
    const stream = await d.open("GET", `/watch/filesystem${d.workDir}`);
    for (const text of ["", "GET /health HTTP/1.1\r\nHost: x\r\nX: "]) {
      const before = heldBy(d);
      using _attack = await flood({ path }, 3 * HALF_OPEN_MAX, text);
      await eventually(() => heldBy(d) <= before + HALF_OPEN_MAX + SOME);
      assert.equal((await d.ask("GET", asked, { socket })).status, 200);
    }
    assert.equal(stream.closed, false);
    stream.destroy();
  }
});

test("a door takes a bounded number of connections, and the daemon serves", { skip }, async () => {
  const accepted = new Set<Socket>();
  let most = 0;
  const port = await freePort();
  await using d = await startSandboxd({
    config: (folder) => ({ doors: [{ listen: `127.0.0.1:${port}`, socket: join(folder, "platform.sock") }] }),
  });
  const platform = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    socket.on("close", () => accepted.delete(socket));
    most = Math.max(most, accepted.add(socket).size);
  }).listen(join(d.folder, "platform.sock"));
  await once(platform, "listening");
  try {
    using _attack = await flood({ port, host: "127.0.0.1" }, DOOR_CONNECTIONS_MAX + 100, "x");
    assert.ok(most <= DOOR_CONNECTIONS_MAX, String(most));
    assert.equal((await d.ask("GET", "/health")).status, 200);
  } finally {
    platform.close();
    for (const socket of accepted) socket.destroy();
  }
});
