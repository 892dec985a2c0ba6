/** Snapshots of volumes that are taken by themselves, on this machine's own driver. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { HOUR_MS, systemClock } from "../../src/lib/time/clock.ts";
import { startTestPlatform } from "../platform.ts";
import { machineSkip } from "../sandbox-suite.ts";
import { eventually } from "../sandboxd-harness.ts";

test("a volume with a schedule gets snapshots, and keeps as many as it says", { skip: machineSkip }, async () => {
  let aheadMs = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
  await using platform = await startTestPlatform({ driver: "real", clock });
  const { resources } = platform.app.store;
  const call = (method: string, path: string, body?: object) =>
    platform.call(method, path, body === undefined ? {} : { body });
  const volume = (snapshots: object, labels = {}) => ({
    metadata: { name: "disk", labels },
    spec: { size: 16, snapshots },
  });
  for (const bad of [
    { schedule: "often" },
    { schedule: "0 0 31 2 *" },
    { schedule: "* * * * *", keep: 0 },
    { schedule: "* * * * *", keep: 49 },
    { keep: 1 },
  ])
    assert.equal((await call("POST", "/volumes", volume(bad))).status, 400, JSON.stringify(bad));
  const made = await call("POST", "/volumes", volume({ schedule: "0 * * * *", keep: 2 }));
  assert.deepEqual(made.body.spec.snapshots, { schedule: "0 * * * *", keep: 2 });
  const { uid } = made.body.metadata;
  const signal = AbortSignal.timeout(60_000);
  const begun = await resources.waitFor("main", uid, (now) => now?.state.snapshotsSince !== undefined, { signal });
  assert.ok(begun, "times count from now on");
  const own = (await call("POST", "/volumes/disk/snapshots", { name: "by-hand" })).body.id;
  const scheduled = async () =>
    (await resources.childrenOf("main", uid, "volumesnapshot")).filter(({ state }) => state.scheduled === true);
  /** Scheduled snapshots once the next one is ready and those beyond `count` are gone. */
  const readyAfter = async (hour: number, count: number): Promise<string[]> => {
    const last = (await scheduled()).at(-1)?.uid;
    aheadMs += HOUR_MS;
    await call("PUT", "/volumes/disk", volume({ schedule: "0 * * * *", keep: 2 }, { hour: String(hour) }));
    await eventually(async () => {
      const all = await scheduled();
      return all.length === count && all.at(-1)?.uid !== last && all.every(({ state }) => state.phase === "ready");
    }, `snapshot ${hour} is there`);
    return (await scheduled()).map(({ name }) => name);
  };
  const [first, second, third] = [await readyAfter(1, 1), await readyAfter(2, 2), await readyAfter(3, 2)];
  assert.equal(second[0], first[0]);
  assert.deepEqual(third[0], second[1], "the oldest is gone");
  const answer = await call("GET", "/volumes/disk/snapshots");
  const all = answer.body as unknown as { id: string; status: string }[];
  assert.ok(all.some(({ id }) => id === own) && all.every(({ status }) => status === "ready"), JSON.stringify(all));
  const clone = await call("POST", "/volumes/disk/clone", { targetName: "copy" });
  assert.equal(clone.body.spec.snapshots, undefined, "a clone has no schedule");
});
