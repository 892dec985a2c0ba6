import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { frameOf } from "../frames.ts";
import { Channel } from "./channel.ts";

const MOUNT = { node: "other", drive: "drive", path: "/", readOnly: false };
const EIO = { code: "EIO" };

test("a server that is away, refuses or says nothing is an error after its time", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "berth-channel-"));
  const path = join(dir, "sock");
  const times = { waitMs: 50, silenceMs: 50, pauseMs: 10 };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("data", () => {}); // it takes every question and answers none
    const greeting = [{}, { refusal: "no" }, { ready: true }][Math.min(sockets.size - 1, 2)] ?? {};
    for (const part of frameOf(greeting)) socket.write(part);
  });
  const channel = new Channel(path, MOUNT, times);
  t.after(() => {
    channel.close();
    for (const socket of sockets) socket.destroy();
    server.close();
    rmSync(dir, { recursive: true });
  });
  await assert.rejects(
    channel.ask("space", () => ({})),
    EIO,
  );
  await new Promise<void>((resolve) => void server.listen(path, resolve));
  // The third connection is a good one, whose server answers nothing.
  while (channel.epoch === 0) await new Promise((resolve) => setImmediate(resolve));
  await assert.rejects(
    channel.ask("remove", () => ({ folder: [], up: "", name: "x" })),
    EIO,
  );
});
