import assert from "node:assert/strict";
import { test } from "node:test";
import { need } from "../capabilities/need.ts";
import type { Observed } from "../workload.ts";
import { call } from "./call.ts";
import { newUid, type Part } from "./harness.ts";

/** Counts with a timer into a file that stays open, and writes down each SIGCONT. */
const COUNTER = `node -e '
  const { openSync, writeSync, appendFileSync } = require("fs");
  const file = openSync("/counted", "a");
  process.on("SIGCONT", () => appendFileSync("/told", "x"));
  setInterval(() => writeSync(file, "x"), 5);
'`;

export const memorySnapshots: Part = (get, spec) => {
  test("copies go on from one instant, each with variables and a generation of its own, and the source goes on", async () => {
    const { driver, read } = get();
    const isolation = "vm-like";
    const source = await driver.create(spec({ isolation, env: { WHO: "source" } }));
    await call(source, "/process", { method: "POST", body: { command: COUNTER, name: "counter" } });
    await until(source, "test -s /counted");
    const id = newUid();
    const taken = await (await need(driver, "memorySnapshots")).take(source.uid, id);
    assert.deepEqual([taken.id, taken.memory], [id, true]);
    const at = (await read(source, "/counted")).length;
    assert.ok(taken.sizeBytes > 1_000_000, "memory counts");
    await until(source, `test $(stat -c %s /counted) -gt ${at}`);
    assert.equal(await ran(source, "cat /run/berth/generation /told 2>/dev/null"), "");

    const resumed = { isolation, snapshot: id, resumed: true } as const;
    const copies = [];
    for (const who of ["one", "two"]) copies.push(await driver.create(spec({ ...resumed, env: { WHO: who } })));
    for (const [index, copy] of copies.entries()) {
      assert.equal(await ran(copy, "echo $WHO"), index === 0 ? "one\n" : "two\n");
      await until(copy, "test -s /told"); // the process that ran in the source was told
      await until(copy, "a=$(stat -c %s /counted); sleep 0.1; test $(stat -c %s /counted) -gt $a");
    }
    const generations = await Promise.all(copies.map((copy) => ran(copy, "cat /run/berth/generation")));
    assert.equal(new Set(generations).size, copies.length);
    await ran(copies[0] ?? source, "echo own > /own");
    assert.equal(await ran(copies[1] ?? source, "test -e /own || echo absent"), "absent\n");

    await (await need(driver, "hibernation")).hibernate(source.uid);
    const asleep = newUid();
    await (await need(driver, "memorySnapshots")).take(source.uid, asleep);
    const woken = await driver.create(spec({ ...resumed, snapshot: asleep }));
    await until(woken, "test -s /told");
    for (const { uid } of [source, woken, ...copies]) await driver.destroy(uid);
    const snapshots = await need(driver, "snapshots");
    for (const each of [id, asleep]) await snapshots.remove(each);
    await assert.rejects(driver.create(spec(resumed)), { code: "bad_request" });
  });

  test("memory of a workload that is not alone with its files is refused", async () => {
    const { driver } = get();
    const taking = await need(driver, "memorySnapshots");
    const files = await driver.create(spec({ isolation: "vm-like" }));
    const id = newUid();
    await (await need(driver, "snapshots")).take(files.uid, id);
    const resumed = spec({ isolation: "vm-like", snapshot: id, resumed: true });
    await assert.rejects(driver.create(resumed), { code: "bad_request", message: /holds no memory/ });
    await assert.rejects(taking.take("unknown", newUid()), { code: "not_found" });
    await driver.destroy(files.uid);
  });
};

async function ran(workload: Observed, command: string): Promise<string> {
  const body = { command, waitForCompletion: true, timeout: 60 };
  const { text } = await call(workload, "/process", { method: "POST", body });
  return (JSON.parse(text) as { logs: string }).logs;
}

/** Resolves when the test inside succeeds. */
const until = (workload: Observed, condition: string): Promise<string> =>
  ran(workload, `until ${condition}; do sleep 0.02; done`);
