import assert from "node:assert/strict";
import { test } from "node:test";
import { need } from "../capabilities/need.ts";
import { dial } from "../dial/dial.ts";
import type { Observed } from "../workload.ts";
import { call } from "./call.ts";
import type { Part } from "./harness.ts";

const PORT = 4100;
/** Counts with a timer, keeps a file open, and tells its count to whoever connects. */
const COUNTER = `node -e '
  const file = require("fs").openSync("/counted", "a");
  let count = 0;
  setInterval(() => { count += 1; require("fs").writeSync(file, "x"); }, 5);
  require("net").createServer((socket) => socket.end(String(count))).listen(${PORT});
'`;

export const hibernation: Part = (get, spec) => {
  test("a workload goes on from disk: its timers, open files and listening sockets, also under the next server", async () => {
    const harness = get();
    const isolation = "vm-like";
    const made = await harness.driver.create(spec({ isolation }));
    await call(made, "/process", { method: "POST", body: { command: COUNTER, name: "counter" } });
    const before = await counted(made);
    const freezing = await need(harness.driver, "freezing");
    await freezing.freeze(made.uid);
    const asleep = await (await need(harness.driver, "hibernation")).hibernate(made.uid);
    assert.deepEqual([asleep.state, asleep.hibernated, asleep.pid], ["frozen", true, undefined]);
    assert.equal((await harness.driver.stats(made.uid)).memoryBytes, 0);
    const next = await harness.restart();
    assert.deepEqual(await next.observe(made.uid), asleep);
    const awake = await (await need(next, "freezing")).thaw(made.uid);
    assert.deepEqual([awake.state, awake.hibernated], ["running", undefined]);
    const after = await counted(awake);
    assert.ok(after >= before && (await counted(awake, after)) > after, "the same process counts on");
    assert.ok((await harness.read(awake, "/counted")).length > before);
    const again = await (await need(next, "hibernation")).hibernate(made.uid);
    assert.equal(again.hibernated, true);
    await next.destroy(made.uid);
    assert.equal(await next.observe(made.uid), null);
  });

  test("a workload that a checkpoint would end is refused, and goes on", async () => {
    const { driver } = get();
    const made = await driver.create(spec({ isolation: "vm-like" }));
    const listen = "node -e 'require(`net`).createServer(() => {}).listen(`/held.sock`)'";
    await call(made, "/process", { method: "POST", body: { command: listen, name: "held" } });
    const until = { command: "until test -S /held.sock; do sleep 0.05; done", waitForCompletion: true };
    assert.equal((await call(made, "/process", { method: "POST", body: until })).status, 200);
    const disk = await need(driver, "hibernation");
    await assert.rejects(disk.hibernate(made.uid), { code: "conflict", message: /held\.sock/ });
    while ((await call(made, "/health").catch(() => null))?.status !== 200)
      await new Promise((resolve) => setTimeout(resolve, 20));
    await assert.rejects(disk.hibernate("unknown"), { code: "not_found" });
    await driver.destroy(made.uid);
  });
};

/** What the counter says, once it says more than `least`. */
async function counted({ endpoint }: Observed, least = 0): Promise<number> {
  for (;;) {
    const socket = await dial(endpoint, PORT).catch(() => null);
    if (socket) {
      const chunks: Buffer[] = [];
      socket.end();
      for await (const chunk of socket) chunks.push(chunk);
      const count = Number(Buffer.concat(chunks).toString());
      if (count > least) return count;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
