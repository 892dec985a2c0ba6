import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import type { Implementation } from "../kinds/port.ts";
import { NO_PROXIES } from "../lib/network/proxies.ts";
import { createPlainEdge, type PlainEdgeOptions, type PlainExchange } from "./plain-edge.ts";

const operation = { id: "driveCreate", method: "POST", path: "/drives", params: [], mutates: true };

test("a body that does not come is not waited for without end", async () => {
  const refused: unknown[] = [];
  const edge = createPlainEdge({
    implementations: [{ operation } as unknown as Implementation],
    requestLog: {
      answered: () => {},
      refusal: (error: unknown) => {
        refused.push(error);
        return { status: 400, headers: {}, body: {}, unexpected: false };
      },
    },
    parseJson: JSON.parse,
    proxies: NO_PROXIES,
    bodyWaitMs: 1,
  } as unknown as PlainEdgeOptions);
  const serve = edge({
    method: "POST",
    target: "/v0/drives",
    rawHeaders: ["Content-Type", "application/json"],
    names: ["content-type"],
    host: "berth.test",
    close: false,
    contentLength: 10,
    isRepeated: false,
    client: null,
  });
  let status = 0;
  const silent: PlainExchange = {
    socket: new PassThrough(),
    remoteAddress: "127.0.0.1",
    fromNetwork: true,
    workload: undefined,
    secure: false,
    attach: () => {},
    readBody: () => {},
    answer: (given) => {
      status = given;
    },
  };
  await serve?.(silent);
  assert.equal(status, 400);
  assert.match(String(refused[0]), /did not arrive within/);
});
