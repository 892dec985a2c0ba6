/** What remains of sandboxes, and for how long. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Deps } from "../../../src/kinds/port.ts";
import { keepLastUsed, purgeTerminated, sweepOrphans } from "../../../src/kinds/sandbox/upkeep.ts";
import { Activity } from "../../../src/lib/activity.ts";
import { onEachDatabase } from "../../each-platform.ts";
import { FakeMachine, fakeDriver } from "../../fake-driver.ts";

const MACHINE_SPEC = {
  name: "x",
  image: "fake/base-image:latest",
  env: {},
  limits: { memoryMb: 64, cpus: 1 },
  network: "closed",
} as const;

await onEachDatabase("sandbox upkeep", ({ call, make, store }) => {
  const { signal } = new AbortController();
  const scope = { workspace: "main", kind: "sandbox", parent: "" };
  const uidOf = async (name: string): Promise<string> => (await store().resources.get(scope, name))?.uid ?? "";
  const deps = (machine: FakeMachine, now = Date.now()): Deps => {
    const clock = { now: () => now };
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    return {
      store: store(),
      driver: fakeDriver(machine),
      activity: new Activity(clock),
      nodes: { owns: () => true },
      clock,
      log,
    } as unknown as Deps;
  };

  test("a record is kept for its time and then gone", async () => {
    const machine = new FakeMachine();
    await make("/sandboxes", "short", { lifecycle: { terminatedRetention: "1m" } });
    await make("/sandboxes", "usual");
    for (const name of ["short", "usual"]) await call("DELETE", `/sandboxes/${name}`);
    const after = async (ms: number) => {
      await purgeTerminated(deps(machine, Date.now() + ms), signal);
      return [(await call("GET", "/sandboxes/short")).status, (await call("GET", "/sandboxes/usual")).status];
    };
    assert.deepEqual(await after(30_000), [200, 200]);
    assert.deepEqual(await after(90_000), [404, 200]);
    assert.deepEqual(await after(400_000), [404, 404]);
    await machine.dispose();
  });

  test("only machines of sandboxes that are over are swept", async () => {
    const machine = new FakeMachine();
    const driver = fakeDriver(machine);
    await make("/sandboxes", "alive");
    await make("/sandboxes", "over");
    const [alive, over] = [await uidOf("alive"), await uidOf("over")];
    await call("DELETE", "/sandboxes/over");
    for (const uid of [alive, over, "a-task-of-some-job"]) await driver.create({ ...MACHINE_SPEC, uid });
    await sweepOrphans(deps(machine), signal);
    assert.deepEqual((await driver.list()).map(({ uid }) => uid).sort(), [alive, "a-task-of-some-job"].sort());
    await machine.dispose();
  });

  test("the time of last use is kept, and never goes back", async () => {
    const machine = new FakeMachine();
    await make("/sandboxes", "used");
    const uid = await uidOf("used");
    const now = Date.parse("2030-01-01T00:00:00Z");
    const later = deps(machine, now);
    later.activity.begin(uid)();
    later.activity.begin("not-a-sandbox")();
    await keepLastUsed(later, signal);
    const earlier = deps(machine, now - 3600_000);
    earlier.activity.begin(uid)();
    await keepLastUsed(earlier, signal);
    assert.equal((await call("GET", "/sandboxes/used")).body.lastUsedAt, "2030-01-01T00:00:00.000Z");
    await machine.dispose();
  });
});
