/** Two nodes on one machine, each with a data folder of its own: each has its own workloads and storage, and no others. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { CapabilityName } from "../capabilities/capabilities.ts";
import { need } from "../capabilities/need.ts";
import { call } from "./call.ts";
import { type Get, type Harness, identityOf, type Make, newUid } from "./harness.ts";

export function neighbours(get: Get, spec: Make, capabilities: readonly CapabilityName[]): void {
  let there: Harness;
  before(async () => {
    there = await get().neighbour();
  });
  after(() => there.dispose());

  test("a node does not see, adopt or end workloads of another node, also not those of the same uid", async () => {
    const here = get();
    const wanted = spec();
    const mine = await here.driver.create(wanted);
    await here.write(mine, "/whose.txt", "mine");
    assert.equal(await there.driver.observe(mine.uid), null);
    assert.equal(await there.driver.waitExit(mine.uid), null);
    assert.deepEqual(await there.driver.list(), []);
    await assert.rejects(there.driver.stats(mine.uid), { code: "not_found" });
    await there.driver.prolong(mine.uid, Date.now() - 1);
    await there.driver.destroy(mine.uid);
    assert.deepEqual(await here.driver.observe(mine.uid), mine);

    const theirs = await there.driver.create({ ...wanted, image: there.image });
    assert.notEqual(identityOf(theirs), identityOf(mine));
    await there.write(theirs, "/whose.txt", "theirs");
    assert.deepEqual((await (await there.restart()).list()).map(identityOf), [identityOf(theirs)]);
    const known = (await (await here.restart()).list()).map(identityOf);
    assert.ok(known.includes(identityOf(mine)) && !known.includes(identityOf(theirs)));
    assert.equal(await here.read(mine, "/whose.txt"), "mine");
    assert.equal(await there.read(theirs, "/whose.txt"), "theirs");

    await here.driver.destroy(mine.uid);
    assert.equal((await call(theirs, "/health")).status, 200);
    assert.deepEqual(await there.driver.observe(theirs.uid), theirs);
  });

  if (capabilities.includes("volumes"))
    test("a volume of one node is none of another", async () => {
      const [ours, others] = [await need(get().driver, "volumes"), await need(there.driver, "volumes")];
      const id = newUid();
      await ours.create({ id, sizeMb: 16 });
      assert.equal(await others.observe(id), null);
      await others.destroy(id);
      assert.equal((await ours.observe(id))?.id, id);
      await ours.destroy(id);
    });

  if (capabilities.includes("drives"))
    test("a drive of one node is none of another", async () => {
      const [ours, others] = [await need(get().driver, "drives"), await need(there.driver, "drives")];
      const id = newUid();
      await ours.create(id);
      assert.equal(await others.bytes(id), null);
      await others.destroy(id);
      assert.notEqual(await ours.bytes(id), null);
      await ours.destroy(id);
    });

  if (capabilities.includes("snapshots"))
    test("a snapshot of one node is none of another", async () => {
      const { driver } = get();
      const [ours, others] = [await need(driver, "snapshots"), await need(there.driver, "snapshots")];
      const id = newUid();
      await ours.take((await driver.create(spec())).uid, id);
      assert.deepEqual(await others.list(), []);
      await others.remove(id);
      assert.ok((await ours.list()).some((each) => each.id === id));
      await ours.remove(id);
    });

  test("a node that ends with its workloads leaves those of another node alone", async () => {
    const { driver } = get();
    const mine = await driver.create(spec());
    await there.driver.create({ ...spec(), image: there.image });
    await there.driver.stop("kill");
    assert.equal((await call(mine, "/health")).status, 200);
    assert.deepEqual(await driver.observe(mine.uid), mine);
  });
}
