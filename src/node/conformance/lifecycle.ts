import assert from "node:assert/strict";
import { test } from "node:test";
import { GRADES, isAtLeast } from "../../lib/grades.ts";
import { dial } from "../dial/dial.ts";
import { call } from "./call.ts";
import { identityOf, type Part } from "./harness.ts";

export const lifecycle: Part = (get, spec) => {
  test("the probe answers honestly and at once", async () => {
    const probe = await get().driver.probe();
    assert.ok(GRADES.includes(probe.grade) && probe.grades.includes(probe.grade));
    if (!isAtLeast(probe.grade, "mapped")) assert.notDeepEqual(probe.missing, []);
  });

  test("create answers with a reachable workload, and the same one the second time", async () => {
    const { driver } = get();
    const wanted = spec();
    const first = await driver.create(wanted);
    assert.equal(first.state, "running");
    assert.equal(first.node, driver.node);
    assert.equal((await call(first, "/health")).status, 200);
    const second = await driver.create(wanted);
    assert.equal(identityOf(second), identityOf(first));
    assert.deepEqual(await driver.observe(wanted.uid), second);
    assert.ok((await driver.list()).some((each) => each.uid === wanted.uid));
    assert.deepEqual(structuredClone(second), JSON.parse(JSON.stringify(second)), "an observation is plain data");
  });

  test("concurrent creates of one uid make one workload", async () => {
    const { driver } = get();
    const wanted = spec();
    const all = await Promise.all([driver.create(wanted), driver.create(wanted), driver.create(wanted)]);
    assert.equal(new Set(all.map(identityOf)).size, 1);
    assert.equal((await driver.list()).filter((each) => each.uid === wanted.uid).length, 1);
  });

  test("an unknown image is refused and leaves nothing", async () => {
    const { driver } = get();
    const wanted = spec({ image: "nobody/knows:this" });
    await assert.rejects(driver.create(wanted), { code: "bad_request" });
    assert.equal(await driver.observe(wanted.uid), null);
  });

  test("stats are numbers", async () => {
    const { driver } = get();
    const made = await driver.create(spec());
    const stats = await driver.stats(made.uid);
    assert.ok(stats.memoryBytes > 0 && stats.cpuMs >= 0 && stats.pids >= 1);
  });

  test("destroy removes it, also twice", async () => {
    const { driver } = get();
    const made = await driver.create(spec());
    await driver.destroy(made.uid);
    await driver.destroy(made.uid);
    assert.equal(await driver.observe(made.uid), null);
    assert.equal(await driver.waitExit(made.uid), null);
    await assert.rejects(dial(made.endpoint, "api"), { code: "bad_gateway" });
    await assert.rejects(driver.stats(made.uid), { code: "not_found" });
  });

  test("an aborted create leaves nothing", async () => {
    const { driver } = get();
    const wanted = spec();
    await assert.rejects(driver.create(wanted, { signal: AbortSignal.abort(new Error("gone")) }), /gone/);
    assert.equal(await driver.observe(wanted.uid), null);
  });

  test("workloads survive their server and are known to the next one", async () => {
    const harness = get();
    const running = await harness.driver.create(spec());
    await harness.write(running, "/kept.txt", "still here");
    const next = await harness.restart();
    const listed = new Map((await next.list()).map((each) => [each.uid, each]));
    assert.deepEqual(listed.get(running.uid), running);
    assert.equal(await harness.read(running, "/kept.txt"), "still here");
    await next.destroy(running.uid);
    assert.equal(await next.observe(running.uid), null);
  });
};
