import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { WebSocketConnection } from "../http/websocket.ts";
import { Viewer } from "./viewer.ts";

test("a client that acknowledges what it does not read gets no more, and goes on when it reads", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "berth-viewer-"));
  const server = createServer().listen(join(dir, "socket"));
  t.after(() => {
    server.close();
    rmSync(dir, { recursive: true });
  });
  const accepted = once(server, "connection") as Promise<[Socket]>;
  const reader = connect(join(dir, "socket"));
  const [socket] = await accepted;
  t.after(() => {
    reader.destroy();
    socket.destroy();
  });
  const connection = new WebSocketConnection(socket, { onText: () => {}, onClose: () => {} });
  const room = Promise.withResolvers<void>();
  const viewer = new Viewer(connection, true, () => room.resolve());
  const message = "x".repeat(32 * 1024);
  let frames = 0;
  for (; frames < 1000 && !viewer.isFull; frames++) {
    viewer.send(message, message.length);
    viewer.acknowledge(message.length);
  }
  assert.ok(viewer.isFull, `${frames} frames`);
  assert.ok(connection.waiting < 1024 * 1024, `${connection.waiting} bytes wait`);
  socket.emit("drain"); // as Bun does when a part has gone
  assert.ok(viewer.isFull, "too much still waits");
  reader.resume();
  await room.promise;
  assert.ok(!viewer.isFull);
});
