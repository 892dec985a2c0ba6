import assert from "node:assert/strict";
import { test } from "node:test";
import { need } from "../capabilities/need.ts";
import type { Driver } from "../driver.ts";
import type { Limits } from "../workload.ts";
import { call } from "./call.ts";
import { identityOf, type Part } from "./harness.ts";

export const resizing: Part = (get, spec) => {
  test("a running workload grows and shrinks without a restart, also under the next server", async () => {
    const harness = get();
    const made = await harness.driver.create(spec());
    const resizing = await need(harness.driver, "resizing");
    for (const limits of [GROWN, GROWN, SHRUNK]) {
      const resized = await resizing.resize(made.uid, limits);
      assert.deepEqual([resized.state, identityOf(resized)], ["running", identityOf(made)]);
      assert.deepEqual(await limitsIn(harness.driver, made.uid), limits);
    }
    const next = await harness.restart();
    assert.deepEqual(await limitsIn(next, made.uid), SHRUNK);
    assert.equal((await call(made, "/health")).status, 200);
    await next.destroy(made.uid);
  });

  test("a frozen workload gets its limits and stays frozen", async () => {
    const { driver } = get();
    const freezing = await driver.capability("freezing");
    if (!freezing) return;
    const made = await driver.create(spec());
    await freezing.freeze(made.uid);
    assert.equal((await (await need(driver, "resizing")).resize(made.uid, GROWN)).state, "frozen");
    await freezing.thaw(made.uid);
    assert.deepEqual(await limitsIn(driver, made.uid), GROWN);
    assert.equal((await call(made, "/health")).status, 200);
    await driver.destroy(made.uid);
  });

  test("limits that no workload can have, and workloads that are not there, are refused", async () => {
    const { driver } = get();
    const resizing = await need(driver, "resizing");
    await assert.rejects(resizing.resize("unknown", GROWN), { code: "not_found" });
    const wanted = spec({ exec: { argv: ["true"] } });
    await driver.create(wanted);
    await driver.waitExit(wanted.uid);
    await assert.rejects(resizing.resize(wanted.uid, GROWN), { code: "conflict" });
    await driver.destroy(wanted.uid);
  });
};

const GROWN: Limits = { memoryMb: 300, cpus: 0.5 };
const SHRUNK: Limits = { memoryMb: 200, cpus: 0.25 };

async function limitsIn(driver: Driver, uid: string): Promise<Limits> {
  const { memoryMb, cpus } = (await driver.observe(uid))?.limits ?? { memoryMb: 0, cpus: 0 };
  return { memoryMb, cpus };
}
