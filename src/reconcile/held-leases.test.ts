import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openTestStore } from "../../test/store.ts";
import { HeldLeases } from "./held-leases.ts";

const dataDir = mkdtempSync(join(tmpdir(), "berth-leases-"));
let now = 1_000_000;
const store = await openTestStore({ databaseUrl: null, dataDir }, { clock: { now: () => now } });
after(async () => {
  await store.close();
  rmSync(dataDir, { recursive: true, force: true });
});
const held = (holder: string): HeldLeases => new HeldLeases(store.leases, holder, assert.ifError);

test("a lease that is renewed stays, one that is not goes to who asks next", async () => {
  const [one, two] = [held("one"), held("two")];
  after(() => [one, two].map((each) => each.stop()));
  const lease = await one.take("x");
  assert.equal(await two.take("x"), null);
  now += 10_000;
  await one.renew();
  now += 10_000;
  assert.equal(await two.take("x"), null, "twenty seconds later it is still held");
  assert.equal(lease?.lost.aborted, false);
  now += 16_000;
  const taken = await two.take("x");
  assert.notEqual(taken, null, "its holder was not heard of for longer than a lease");
  await one.renew();
  assert.equal(lease?.lost.aborted, true, "who was late is told");
  await lease?.release();
  assert.equal(await one.take("x"), null, "and gives back nothing that is another's");
  await taken?.release();
  assert.notEqual(await one.take("x"), null);
});
