/** SIGKILL at random moments while resources are written over HTTP: what was acknowledged is there, nothing is half there. */

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { testDatabases } from "./databases.ts";
import { LONG } from "./long.ts";
import { caller } from "./platform.ts";
import { startServer } from "./server-process.ts";

const databases = await testDatabases();
after(() => databases.stop());
const ROUNDS = LONG ? 20 : 1;
const WRITERS = 8;

for (const database of databases.all) {
  describe(`killed while writing, on ${database.name}`, { skip: database.skip }, () => {
    test(`${ROUNDS} rounds`, async () => {
      const place = await database.fresh();
      const acknowledged = new Map<string, string>();
      for (let round = 0; round < ROUNDS; round += 1) {
        const server = await startServer(place);
        const call = caller(server.url);
        await verify(call, acknowledged, database.name === "sqlite");
        const first = Promise.withResolvers<void>();
        const writers = Array.from({ length: WRITERS }, (_, writer) =>
          writeUntilDeath(call, `r${round}w${writer}`, (name, uid) => {
            acknowledged.set(name, uid);
            first.resolve();
          }),
        );
        // Whatever the speed of the machine, the kill falls into the writing.
        await first.promise;
        await delay(Math.random() * 300);
        await server.kill("SIGKILL");
        await Promise.all(writers);
      }
      const server = await startServer(place);
      await verify(caller(server.url), acknowledged, database.name === "sqlite");
      assert.ok(acknowledged.size >= ROUNDS, "the rounds wrote something");
      await server.kill("SIGTERM");
      assert.equal(server.child.exitCode, 0);
      place.remove();
    });
  });
}

async function writeUntilDeath(
  call: ReturnType<typeof caller>,
  prefix: string,
  onAcknowledged: (name: string, uid: string) => void,
): Promise<void> {
  for (let n = 0; ; n += 1) {
    const name = `${prefix}n${n}`;
    const created = await call("POST", "/drives", {
      body: { metadata: { name, labels: { n: String(n) } }, spec: { size: n + 1 } },
    }).catch(() => null);
    if (!created) return;
    assert.equal(created.status, 200);
    onAcknowledged(name, created.body.metadata.uid);
  }
}

async function verify(
  call: ReturnType<typeof caller>,
  acknowledged: Map<string, string>,
  toldTogether: boolean,
): Promise<void> {
  const found = new Map<string, string>();
  for (let cursor = ""; ; ) {
    const { body } = await call("GET", `/drives?limit=200${cursor ? `&cursor=${cursor}` : ""}`);
    for (const { metadata, spec, status } of body.data) {
      found.set(metadata.name, metadata.uid);
      assert.equal(status, "DEPLOYED");
      assert.equal(metadata.labels.n, String(spec.size - 1), "no half-written resource");
    }
    cursor = body.meta.nextCursor;
    if (!cursor) {
      assert.equal(body.meta.total, found.size, "the counter agrees with the rows");
      break;
    }
  }
  for (const [name, uid] of acknowledged) assert.equal(found.get(name), uid, `${name} was acknowledged`);
  const told = await toldOf(call);
  // On SQLite a line is in the commit of what it tells of, acknowledged or not; elsewhere it may come a moment later.
  for (const name of (toldTogether ? found : acknowledged).keys())
    assert.ok(told.has(name), `the log tells of ${name}`);
  const searched = await call("GET", "/drives?q=r0w0n0&limit=1");
  assert.equal(
    searched.body.data.length,
    acknowledged.has("r0w0n0") ? 1 : searched.body.data.length,
    "the search index agrees with the rows",
  );
}

async function toldOf(call: ReturnType<typeof caller>): Promise<Set<string>> {
  const told = new Set<string>();
  for (let cursor = ""; ; ) {
    const { body } = await call("GET", `/audit?action=driveCreate&limit=200${cursor ? `&cursor=${cursor}` : ""}`);
    for (const { target } of body.data) told.add(target);
    cursor = body.meta.nextCursor;
    if (!cursor) return told;
  }
}
