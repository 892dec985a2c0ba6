import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { type TestPlace, testDatabases } from "../../../test/databases.ts";
import { openTestStore } from "../../../test/store.ts";
import type { Store } from "../store.ts";
import type { DeliveryDraft } from "./delivery.ts";

const databases = await testDatabases();
after(() => databases.stop());

const draft = (patch: Partial<DeliveryDraft> = {}): DeliveryDraft => ({
  workspace: "w",
  kind: "agent",
  uid: "u",
  triggerId: "t",
  cause: "async",
  phase: "request",
  payload: { secret: "hush" },
  withinMs: 1000,
  ...patch,
});
const claimBy = (holder: string, exceptUids: string[] = []) => ({ holder, leaseMs: 100, limit: 10, exceptUids });

for (const database of databases.all) {
  describe(`deliveries on ${database.name}`, { skip: database.skip }, () => {
    const clock = { ms: Date.now(), now: () => clock.ms };
    let place: TestPlace;
    let store: Store;
    before(async () => {
      place = await database.migrated();
      store = await openTestStore(place, { clock });
    });
    after(async () => {
      await store.close();
      place.remove();
    });
    beforeEach(() =>
      store.write(async ({ queries }) => {
        await queries.deleteFrom("deliveries").execute();
        await queries.deleteFrom("delivery_counts").execute();
      }),
    );

    test("one holder has it, until its lease ends; then its report counts no more", async () => {
      const { deliveries } = store;
      await deliveries.add(draft());
      const [first] = await deliveries.claim("request", claimBy("a"));
      assert.ok(first);
      assert.deepEqual(first.payload, { secret: "hush" });
      assert.deepEqual(await deliveries.claim("request", claimBy("b")), []);
      clock.ms += 90;
      assert.deepEqual([...(await deliveries.renew("a", [first.id], 100))], [first.id]);
      clock.ms += 90;
      assert.deepEqual(await deliveries.claim("request", claimBy("b")), []);
      clock.ms += 20;
      const [second] = await deliveries.claim("request", claimBy("b"));
      assert.ok(second);
      assert.equal(second.attempt, 2);
      assert.deepEqual([...(await deliveries.renew("a", [first.id], 100))], []);
      assert.equal(await deliveries.finish(first), false);
      assert.equal(await deliveries.retry(first, 0, true), false);
      assert.equal(await deliveries.follow(first, "callback", {}, 1), false);
      assert.equal(await deliveries.finish(second), true);
      assert.equal(await deliveries.isDue("request"), false);
    });

    test("several who take at once never take the same", async () => {
      const { deliveries } = store;
      for (let n = 0; n < 20; n += 1) await deliveries.add(draft());
      const taken = await Promise.all(
        ["a", "b", "c", "d"].map((holder) => deliveries.claim("request", claimBy(holder))),
      );
      const ids = taken.flat().map(({ id }) => id);
      assert.equal(new Set(ids).size, ids.length);
    });

    test("a failed try waits, a phase follows another, a busy workload is passed over", async () => {
      const { deliveries, database: db } = store;
      await deliveries.add(draft());
      await deliveries.add(draft({ uid: "busy" }));
      const [one] = await deliveries.claim("request", claimBy("a", ["busy"]));
      assert.equal(one?.uid, "u");
      await deliveries.retry(one, 500, true);
      assert.deepEqual(await deliveries.claim("request", claimBy("a", ["busy"])), []);
      clock.ms += 500;
      const [again] = await deliveries.claim("request", claimBy("a", ["busy"]));
      assert.equal(again?.failures, 1);
      await deliveries.follow(again, "callback", { answer: 1 }, 5000);
      const [told] = await deliveries.claim("callback", claimBy("a"));
      assert.deepEqual([told?.payload, told?.failures, told?.deadline_at], [{ answer: 1 }, 0, clock.ms + 5000]);
      const rows = await db.read.selectFrom("deliveries").selectAll().execute();
      const [count] = await db.read.selectFrom("delivery_counts").selectAll().execute();
      assert.deepEqual([count?.waiting, count?.bytes], [2, rows.reduce((sum, { sealed }) => sum + sealed.length, 0)]);
      await deliveries.release("a");
      assert.equal((await deliveries.claim("callback", claimBy("b"))).length, 1);
    });

    test("too much is refused, but not what was promised", async () => {
      const { deliveries, write } = store;
      await deliveries.add(draft());
      await write(({ queries }) => queries.updateTable("delivery_counts").set({ waiting: 10_000 }).execute());
      assert.equal(await deliveries.add(draft()), false);
      assert.equal(await deliveries.add(draft({ workspace: "other" })), true);
      assert.equal(await deliveries.add(draft({ unbounded: true })), true);
    });
  });
}
