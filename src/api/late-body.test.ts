/** Bodies that never end, at the framework's edge: the plain edge has a time of its own. */

import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import pino from "pino";
import { Registry } from "prom-client";
import { UnreadAnswers } from "../http/unread-answers.ts";
import type { Implementation } from "../kinds/port.ts";
import { NO_PROXIES } from "../lib/network/proxies.ts";
import { createRequestLog } from "./request-log.ts";
import { type ApiOptions, createApi } from "./server.ts";

const operation = (id: string): Implementation =>
  ({ operation: { id, method: "POST", path: `/${id}`, params: [] } }) as unknown as Implementation;

test("a body that trickles or stops is answered with 400 and its connection ends", async (t) => {
  let server: Server | undefined;
  const registry = new Registry();
  const api = createApi({
    implementations: [operation("drives")],
    registry,
    unread: new UnreadAnswers(),
    requestLog: createRequestLog(registry, pino({ level: "silent" })),
    serverFactory: (handler: Parameters<ApiOptions["serverFactory"]>[0]) => {
      server = createServer({ requestTimeout: 0 }, handler);
      return server;
    },
    proxies: NO_PROXIES,
    bodyWaitMs: 100,
  } as unknown as ApiOptions);
  t.after(() => api.close());
  await api.listen({ port: 0, host: "127.0.0.1" });
  const address = server?.address() as AddressInfo;

  const send = (path: string, type: string, framing: string): { socket: Socket; ended: Promise<string> } => {
    const socket = connect(address.port, "127.0.0.1").setEncoding("utf8");
    t.after(() => socket.destroy());
    let text = "";
    socket.on("data", (chunk: string) => {
      text += chunk;
    });
    socket.on("error", () => {}); // it is cut while it sends
    socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\n${framing}\r\n\r\n`);
    return { socket, ended: new Promise((resolve) => socket.once("close", () => resolve(text))) };
  };
  const silent = send("/v0/drives", "application/json", "Content-Length: 100000");
  const chunked = send("/v0/drives", "application/json", "Transfer-Encoding: chunked");
  const trickling = send("/v0/drives", "application/json", "Content-Length: 100000");
  while (!trickling.socket.closed) {
    if (trickling.socket.writable) trickling.socket.write(" ");
    await pause(5);
  }
  for (const { ended } of [silent, chunked]) assert.match(await ended, /^HTTP\/1\.1 400 [\s\S]*did not arrive/);
});
