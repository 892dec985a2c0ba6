/** Bandwidth limits of the proxy on real connections. A load of the machine only makes them slower. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { test } from "node:test";
import { listen, ruledPlace } from "../../../test/egress-place.ts";

/** 100 KB take 100 ms. */
const MBPS = 8;
/** Less what may leave at once. */
const BURST_MS = 100;
const BYTES = 500_000;

test("what a workload receives through tunnels has its limit, for all tunnels together", async (t) => {
  const upstream = await listen(
    t,
    createServer((socket) => void socket.on("error", () => {}).end(Buffer.alloc(BYTES / 2))),
  );
  const { tunnel } = await ruledPlace(t, { bandwidth: { receiveMbps: MBPS } });
  const begun = performance.now();
  await Promise.all(
    [1, 2].map(async () => {
      const { socket } = await tunnel(`a.test:${upstream}`);
      await once(socket.resume(), "end");
    }),
  );
  // The last chunk of each is passed on before it is paid for.
  assert.ok(performance.now() - begun >= BYTES / 1000 - BURST_MS - 2 * 65.536);
});

test("what a workload sends in requests has its limit, and a change holds for an open request", async (t) => {
  let received = 0;
  const upstream = await listen(
    t,
    createHttpServer((incoming, response) => {
      incoming.on("data", (chunk: Buffer) => {
        received += chunk.length;
      });
      incoming.on("end", () => response.end("all"));
    }),
  );
  const { ask, rules } = await ruledPlace(t, { bandwidth: { sendMbps: MBPS } });
  const head = (bytes: number): string =>
    `POST http://a.test:${upstream}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${bytes}\r\n\r\n`;
  const begun = performance.now();
  assert.match(await ask(head(BYTES) + "x".repeat(BYTES)), /all$/);
  assert.ok(performance.now() - begun >= BYTES / 1000 - BURST_MS - 65.536);

  // At this rate the test would take an hour.
  rules.set({ bandwidth: { sendMbps: 0.1 } });
  const size = 50_000_000;
  received = 0;
  const answer = ask(head(size) + "x".repeat(size));
  while (received === 0) await new Promise(setImmediate);
  rules.set({});
  assert.match(await answer, /all$/);
});

test("a server that speaks first does not go around the limit", async (t) => {
  const upstream = await listen(
    t,
    createServer((socket) => void socket.on("error", () => {}).end(Buffer.alloc(BYTES))),
  );
  const network = { bandwidth: { receiveMbps: MBPS }, proxy: { forbiddenDomains: ["b.test"] } };
  const { tunnel } = await ruledPlace(t, network);
  const begun = performance.now();
  const { socket } = await tunnel(`a.test:${upstream}`);
  await once(socket.resume(), "end");
  assert.ok(performance.now() - begun >= BYTES / 1000 - BURST_MS - 65.536);
});
