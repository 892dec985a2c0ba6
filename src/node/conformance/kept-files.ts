import assert from "node:assert/strict";
import { test } from "node:test";
import type { OnStop } from "../driver.ts";
import { call } from "./call.ts";
import type { Part } from "./harness.ts";

export const keptFiles: Part = (get, spec) => {
  test("a sandbox that was ended starts again on its files, until it is destroyed", async () => {
    const harness = get();
    const { driver } = harness;
    const wanted = spec();
    await harness.write(await driver.create(wanted), "/kept.txt", "still here");
    for (const round of [1, 2]) {
      await driver.destroy(wanted.uid, { keepFiles: true });
      await driver.destroy(wanted.uid, { keepFiles: true });
      const ended = await driver.observe(wanted.uid);
      assert.equal(ended?.state, "exited", `round ${round}`);
      const again = await driver.create(wanted);
      assert.equal(again.state, "running");
      assert.equal((await call(again, "/health")).status, 200);
      assert.equal(await harness.read(again, "/kept.txt"), "still here");
    }
    await driver.destroy(wanted.uid);
    assert.equal(await driver.observe(wanted.uid), null);
    await assert.rejects(harness.read(await driver.create(wanted), "/kept.txt"));
  });

  test("a sandbox that a stop of the server ended is known to the next server; of a command nothing is kept", async () => {
    const harness = get();
    const [box, command] = [spec(), spec({ exec: { argv: ["sleep", "600"] } })];
    await harness.write(await harness.driver.create(box), "/kept.txt", "still here");
    await harness.driver.create(command);
    const next = await harness.restart("end" satisfies OnStop);
    const ended = await next.observe(box.uid);
    assert.deepEqual([ended?.state, ended?.endedBy], ["exited", "platform"]);
    assert.equal(await next.observe(command.uid), null);
    const again = await next.create(box);
    assert.equal(await harness.read(again, "/kept.txt"), "still here");
    assert.equal(again.endedBy, undefined);
  });

  test("a snapshot of what has ended holds its files", async (t) => {
    const harness = get();
    const snapshots = await harness.driver.capability("snapshots");
    if (!snapshots) return t.skip("the driver has no snapshots");
    const wanted = spec();
    await harness.write(await harness.driver.create(wanted), "/kept.txt", "still here");
    await harness.driver.destroy(wanted.uid, { keepFiles: true });
    await snapshots.take(wanted.uid, "of-ended");
    const copy = await harness.driver.create(spec({ snapshot: "of-ended" }));
    await snapshots.remove("of-ended");
    assert.equal(await harness.read(copy, "/kept.txt"), "still here");
    // A copy stands on the snapshot, also when it starts again.
    await harness.driver.destroy(copy.uid, { keepFiles: true });
    assert.equal(await harness.read(await harness.driver.create(spec({ uid: copy.uid })), "/kept.txt"), "still here");
  });
};
