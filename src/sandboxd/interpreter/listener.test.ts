import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { listenerOf } from "./listener.ts";

test("waiting for a caller who reads slowly costs one listener, however often it is asked for", async (t) => {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const asked = get({ host: "127.0.0.1", port, agent: false });
  const [, res] = (await once(server, "request")) as [IncomingMessage, ServerResponse];
  const idle = res.listenerCount("drain");
  const listener = listenerOf(res);
  while (listener.tell({ type: "stdout", text: "x".repeat(65_536), timestamp: 0 }));
  const waiting = Array.from({ length: 100 }, () => listener.drained());
  assert.equal(res.listenerCount("drain"), idle + 1);
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  answer.resume();
  await Promise.all(waiting);
  assert.equal(res.listenerCount("drain"), idle);
  res.end();
  await once(answer, "end");
});
