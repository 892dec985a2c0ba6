import assert from "node:assert/strict";
import { test } from "node:test";
import { need } from "../capabilities/need.ts";
import { dial } from "../dial/dial.ts";
import { call } from "./call.ts";
import type { Part } from "./harness.ts";

export const freezing: Part = (get, spec) => {
  test("freeze holds it, thaw lets it answer again, both twice", async () => {
    const { driver } = get();
    const freezing = await need(driver, "freezing");
    const made = await driver.create(spec());
    for (let round = 0; round < 2; round++) assert.equal((await freezing.freeze(made.uid)).state, "frozen");
    assert.equal((await driver.observe(made.uid))?.state, "frozen");
    for (let round = 0; round < 2; round++) assert.equal((await freezing.thaw(made.uid)).state, "running");
    assert.equal((await call(made, "/health")).status, 200);
  });

  test("a workload that has ended or is unknown cannot be frozen", async () => {
    const { driver } = get();
    const freezing = await need(driver, "freezing");
    for (const alone of [false, true]) {
      const wanted = spec({ exec: { argv: ["true"], alone } });
      await driver.create(wanted);
      await driver.waitExit(wanted.uid);
      await assert.rejects(freezing.freeze(wanted.uid), { code: "conflict" });
      await driver.destroy(wanted.uid);
      await assert.rejects(freezing.freeze(wanted.uid), { code: "not_found" });
    }
  });

  test("destroy removes a frozen workload, also twice", async () => {
    const { driver } = get();
    const freezing = await need(driver, "freezing");
    const made = await driver.create(spec());
    await freezing.freeze(made.uid);
    await driver.destroy(made.uid);
    await driver.destroy(made.uid);
    assert.equal(await driver.observe(made.uid), null);
    await assert.rejects(dial(made.endpoint, "api"), { code: "bad_gateway" });
    await assert.rejects(freezing.freeze(made.uid), { code: "not_found" });
  });

  test("a frozen workload survives its server frozen, and the next server thaws it", async () => {
    const harness = get();
    const frozen = await harness.driver.create(spec());
    await (await need(harness.driver, "freezing")).freeze(frozen.uid);
    const next = await harness.restart();
    assert.equal((await next.list()).find(({ uid }) => uid === frozen.uid)?.state, "frozen");
    await (await need(next, "freezing")).thaw(frozen.uid);
    assert.equal((await call(frozen, "/health")).status, 200);
    await next.destroy(frozen.uid);
  });
};
