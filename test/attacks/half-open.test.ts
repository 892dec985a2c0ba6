/** Connections that never become a request: they end in time, and however many there are, others are served. */

import assert from "node:assert/strict";
import { eventually, exchange, heldClock, inBothLanes, RawClient as Raw, type RawClient } from "../gateway/harness.ts";
import { LONG } from "../long.ts";

const GET = "GET /v0/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
const FLOOD = LONG ? 2000 : 60;
const NEWCOMERS_MAX = 20;
/** Node's own clock cannot be held: a short time, and no deadline for noticing that it is over. */
const SHORT = { headersTimeout: 100, connectionsCheckingInterval: 20 };

inBothLanes("half a head, a trickling one and none at all are closed in time", async (start) => {
  await using gw = await start({ upstream: 1, server: SHORT, limits: { headMs: 100 } });
  const beginnings = ["", "G", "GET /v0/x HTTP/1.1\r\n", "GET /ws/agents/a HTTP/1.1\r\nHost: h\r\nX: "];
  const clients = await Promise.all(beginnings.map(async (text) => (await Raw.to(gw.port)).write(text)));
  const trickle = setInterval(() => clients.at(-1)?.socket.write("x"), 10);
  try {
    for (const client of clients) await eventually(() => client.closed || client.ended, "the connection ends");
  } finally {
    clearInterval(trickle);
    for (const client of clients) client.socket.destroy();
  }
  for (const client of clients.slice(1)) assert.match(client.received, /^(HTTP\/1\.1 408 |$)/);
});

inBothLanes("a client that came back is waited for longer than a new one", async (start) => {
  using clock = heldClock();
  await using gw = await start({ upstream: 1, limits: { headMs: 15_000 } });
  using client = await Raw.to(gw.port);
  client.write("GET /v0/x HTTP/1.1\r\nHost: h\r\n\r\n");
  await client.until((text) => text.endsWith("management"));
  await clock.pass(20_000);
  assert.equal(client.closed, false);
});

inBothLanes("a flood of half-open connections costs a bounded number, and others are served", async (start) => {
  await using gw = await start({ upstream: 1, limits: { newcomersMax: NEWCOMERS_MAX } });
  // One that has sent its request is no newcomer, however old it is.
  using old = await Raw.to(gw.port);
  old.write("GET /v0/x HTTP/1.1\r\nHost: h\r\n\r\n");
  await old.until((text) => text.endsWith("management"));
  const flood: RawClient[] = [];
  try {
    for (let n = 0; n < FLOOD; n += 1) flood.push((await Raw.to(gw.port)).write(n % 2 ? "GET / HT" : ""));
    const open = (): number => flood.filter(({ closed, ended }) => !closed && !ended).length;
    await eventually(() => open() <= NEWCOMERS_MAX, "the oldest are closed");
    assert.ok(gw.gateway.newcomers.size <= NEWCOMERS_MAX);
    assert.match(await exchange(gw.port, GET), /^HTTP\/1\.1 200 /);
    assert.equal(old.closed, false);
    old.received = "";
    old.write("GET /v0/x HTTP/1.1\r\nHost: h\r\n\r\n");
    await old.until((text) => text.endsWith("management"));
  } finally {
    for (const client of flood) client.socket.destroy();
  }
  await eventually(() => gw.gateway.newcomers.size === 0, "nothing is kept of them");
});
