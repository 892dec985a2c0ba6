import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { createWorkQueue } from "./work-queue.ts";

test("a queue that does not answer is named with its address and the cause", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  const end = new AbortController();
  const notes: string[] = [];
  const url = `http://127.0.0.1:${port}`;
  const queue = createWorkQueue({ url, environmentId: "env_1", key: "k", workerId: "w" }, (text) => {
    notes.push(text);
    end.abort();
  });
  await assert.rejects(queue.claim(end.signal));
  assert.deepEqual(notes, [`the queue at ${url} does not answer (ECONNREFUSED); next try in 1 s`]);
});
