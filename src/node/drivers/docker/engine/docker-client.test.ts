import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { tar } from "../../../../../test/image-archive.ts";
import { resolved } from "../images/docker-images.ts";
import { logsOf } from "../workload/container-logs.ts";
import { userOf } from "../workload/workload-user.ts";
import { DockerClient } from "./docker-client.ts";
import { parseDockerHost } from "./docker-host.ts";

const MB = 1024 * 1024;

test("an answer of the engine is read as far as its limit, and the rest is not fetched", async (t) => {
  const head = tar([{ path: "passwd", content: Buffer.alloc(2 * MB) }]).subarray(0, MB);
  const closed: Promise<unknown>[] = [];
  // Each answer stops in the middle and never ends: a reader that wants all of it waits for ever.
  const server = createServer((_, response) => {
    closed.push(once(response, "close"));
    response.write(head);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = new DockerClient(parseDockerHost(`tcp://127.0.0.1:${(server.address() as AddressInfo).port}`));
  t.after(async () => {
    await client.close();
    server.closeAllConnections();
    server.close();
  });
  const image = resolved({ Id: "sha256:0", Size: 0, Config: { User: "app" } }, "loaded/large:latest");
  await assert.rejects(userOf(client, "id", image), { code: "bad_request" });
  await assert.rejects(logsOf(client, "id", { lines: "all", bytesMax: MB / 2 }), /more than 524288 bytes/);
  await assert.rejects(client.bytes("GET", "/info", 1), /more than 1 bytes/);
  assert.equal(closed.length, 4);
  await Promise.all(closed);
});
