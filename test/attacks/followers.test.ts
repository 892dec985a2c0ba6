/** Followers of endless streams that never read: little is taken from the workload, and their number is bounded. */

import assert from "node:assert/strict";
import type { Socket } from "node:net";
import {
  AUTH,
  type RawClient as Client,
  eventually,
  exchange,
  inBothLanes,
  RawClient,
  rawUpstream,
} from "../gateway/harness.ts";
import { LONG } from "../long.ts";

const FLOOD = LONG ? 200 : 20;
const OPEN_MAX = { server: FLOOD * 4, workspace: FLOOD, caller: FLOOD / 2 };
/** The gateway's and the kernel's buffers of the two connections of one stream. */
const STREAM_BYTES_MAX = 32 * 1024 * 1024;
const LINE = Buffer.alloc(64 * 1024, "log line\n");

const WORKLOADS = [
  { uid: "uid-1", workspace: "ws", name: "a" },
  { uid: "uid-2", workspace: "ws", name: "public", public: true },
  { uid: "uid-3", workspace: "ws2", name: "b" },
];

const ask = (path: string, more = ""): string => `GET ${path} HTTP/1.1\r\nHost: h\r\n${more}\r\n`;
const AS_WEBSOCKET = "Connection: Upgrade\r\nUpgrade: websocket\r\n";

/** A workload that answers /stream and upgrades without end, as fast as it is read, and everything else at once. */
const endless = (socket: Socket, received: () => string): void => {
  socket.once("data", () => {
    const head = received();
    if (!head.includes("/stream")) return void socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    const isUpgrade = head.toLowerCase().includes("upgrade: websocket");
    socket.write(
      isUpgrade
        ? "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
        : "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
    );
    const pour = (): void => {
      while (!socket.destroyed && socket.write(LINE));
    };
    socket.on("drain", pour);
    pour();
  });
};

const takenFrom = ({ bytesWritten, writableLength }: Socket): number => bytesWritten - writableLength;

for (const [form, more] of [
  ["log streams", ""],
  ["WebSockets", AS_WEBSOCKET],
] as const)
  inBothLanes(`${form} that nobody reads hold a bounded part of the output, and so many and no more`, async (start) => {
    await using upstream = await rawUpstream(endless);
    await using gw = await start({ upstream: upstream.port, workloads: WORKLOADS, limits: { openMax: OPEN_MAX } });
    const followers: Client[] = [];
    try {
      for (let n = 0; n < OPEN_MAX.caller; n += 1) {
        const follower = await RawClient.to(gw.port);
        followers.push(follower);
        follower.write(ask("/ws/agents/a/stream", AUTH + more));
        await follower.until((text) => text.startsWith("HTTP/1.1 "));
        follower.socket.pause();
      }
      const one = await exchange(gw.port, ask("/ws/agents/a/x", `${AUTH}Connection: close\r\n`));
      assert.match(one, /^HTTP\/1\.1 429 .*Retry-After: 1.*"RATE_LIMITED".*This caller/is);
      // Others: another workspace, and strangers at a public workload.
      for (const path of ["/ws2/agents/b/x", "/ws/agents/public/x"]) {
        const auth = path.startsWith("/ws2") ? AUTH : "";
        assert.match(await exchange(gw.port, ask(path, `${auth}Connection: close\r\n`)), /^HTTP\/1\.1 200 /, path);
      }
      const streams = upstream.connections.filter((_, index) => upstream.received[index]?.includes("/stream"));
      assert.equal(streams.length, OPEN_MAX.caller);
      for (const stream of streams) assert.ok(takenFrom(stream) < STREAM_BYTES_MAX, String(takenFrom(stream)));
      // One of them leaves, and there is room.
      followers[0]?.socket.destroy();
      const again = ask("/ws/agents/a/x", `${AUTH}Connection: close\r\n`);
      for (let text = ""; !text.startsWith("HTTP/1.1 200 "); ) text = await exchange(gw.port, again);
    } finally {
      for (const { socket } of followers) socket.destroy();
    }
    await eventually(() => gw.leases === 0, "nothing is kept of them");
  });

inBothLanes("strangers at a public workload take nothing from the workspace's own people", async (start) => {
  await using upstream = await rawUpstream(endless);
  const openMax = { server: 100, workspace: 3, caller: 3 };
  await using gw = await start({ upstream: upstream.port, workloads: WORKLOADS, limits: { openMax } });
  const followers: Client[] = [];
  try {
    for (let n = 0; n < openMax.workspace; n += 1) {
      const follower = await RawClient.to(gw.port);
      followers.push(follower);
      follower.write(ask("/ws/agents/public/stream"));
      await follower.until((text) => text.startsWith("HTTP/1.1 200"));
      follower.socket.pause();
    }
    const stranger = await exchange(gw.port, ask("/ws/agents/public/x", "Connection: close\r\n"));
    assert.match(stranger, /^HTTP\/1\.1 429 .*This caller has 3 requests open/s);
    const own = await exchange(gw.port, ask("/ws/agents/public/x", `${AUTH}Connection: close\r\n`));
    assert.match(own, /^HTTP\/1\.1 200 /);
  } finally {
    for (const { socket } of followers) socket.destroy();
  }
});
