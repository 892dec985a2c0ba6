import assert from "node:assert/strict";
import { test } from "node:test";
import fastify from "fastify";
import { addPlatformRoutes, type PlatformRoutesOptions } from "./platform-routes.ts";

test("a server without some of its edge processes says so, and stays in service", async (t) => {
  const api = fastify();
  t.after(() => api.close());
  let edges: string | null = null;
  let disk: string | null = null;
  const deps = {
    settings: { version: "0" },
    store: { ping: async () => {} },
    here: { disk: { shortage: () => disk, canWrite: () => true } },
  };
  // As far as this route needs it.
  addPlatformRoutes(api, { deps, edgeShortage: () => edges } as unknown as PlatformRoutesOptions);
  const standing = async () => {
    const { statusCode, body } = await api.inject("/readyz");
    return `${statusCode} ${body}`;
  };
  assert.equal(await standing(), '200 {"status":"ready"}');
  edges = "1 of 2 edge processes serve the port.";
  assert.equal(await standing(), `200 {"status":"degraded","reason":"${edges}"}`);
  disk = "The disk is full.";
  assert.match(await standing(), /^200 .*New work is refused\. The disk is full\./);
});
