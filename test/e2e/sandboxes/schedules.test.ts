/** Schedules that really fire, in sandboxes on this machine's own driver. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { uuidv7 } from "../../../src/lib/ids.ts";
import type { Resource } from "../../../src/store/resources/resource.ts";
import { machineSkip, sandboxSuite } from "../../sandbox-suite.ts";
import { eventually } from "../../sandboxd-harness.ts";
import { draftOf } from "../../store.ts";

describe("schedules on this machine", { skip: machineSkip }, () => {
  const suite = sandboxSuite();
  const { inside, exec, create } = suite;
  before(async () => {
    await suite.start({ standby_after: "1" });
    await create("box");
  });
  after(() => suite.stop());

  const add = async (body: object) => {
    const made = await suite.platform().call("POST", "/sandboxes/box/schedules", { body });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    return made.body;
  };
  const executions = async () => (await suite.platform().call("GET", "/sandboxes/box/schedule-executions")).body.data;
  /** Waits until this many firings are written down; every one is a change of the store. */
  const fired = async (count: number) => {
    const { resources } = suite.platform().app.store;
    const sandbox = await resources.get({ workspace: "main", kind: "sandbox", parent: "" }, "box");
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = async () => {
      const all = await resources.childrenOf("main", sandbox?.uid ?? "", "scheduleexecution");
      if (all.length >= count) resolve();
    };
    const unsubscribe = resources.onChange((kind) => {
      if (kind === "scheduleexecution") void look();
    });
    await look();
    await promise.finally(unsubscribe);
  };

  test("a one-off wakes a sleeping sandbox, runs with its environment, and is gone", async () => {
    await suite.reaches("box", ({ state }) => state === "STANDBY");
    await add({
      type: "sleep",
      value: "1s",
      input: { command: 'echo "$WORD" > /tmp/fired', name: "greeter", env: { WORD: "it's on" }, keepAlive: false },
    });
    await fired(1);
    const [record] = await executions();
    assert.deepEqual(
      [record.scheduleId, record.statusCode, record.processName, record.timeout, record.error],
      ["schedule-0", 200, "greeter", 600, undefined],
    );
    await eventually(async () => (await inside("box", "GET", "/process/greeter")).body.status === "completed");
    assert.equal((await exec("box", "cat /tmp/fired")).body.stdout, "it's on\n");
    assert.deepEqual((await suite.platform().call("GET", "/sandboxes/box/schedules")).body.data, []);
  });

  test("what the sandbox refuses is written down", async () => {
    await add({ type: "sleep", value: "1s", input: { command: "true", workingDir: "/no/such/folder" } });
    await fired(2);
    const [record] = await executions();
    assert.ok(record.statusCode >= 400, JSON.stringify(record));
    assert.ok(record.error.length > 0);
  });

  /** As if it had been made a while ago. */
  const plant = async (name: string, spec: object) => {
    const { resources } = suite.platform().app.store;
    const sandbox = await resources.get({ workspace: "main", kind: "sandbox", parent: "" }, "box");
    const since = (Date.now() - 10 * 60_000).toString(16).padStart(12, "0");
    const uid = `${since.slice(0, 8)}-${since.slice(8)}${uuidv7(Date.now()).slice(13)}`;
    await resources.create(
      draftOf("schedule", name, { parent: sandbox?.uid ?? "", uid, spec: { input: { command: "true" }, ...spec } }),
    );
    return uid;
  };
  const becomes = (uid: string, until: (now: Resource | null) => boolean) =>
    suite.platform().app.store.resources.waitFor("main", uid, until, { signal: AbortSignal.timeout(90_000) });
  const of = async (name: string) => (await executions()).filter(({ scheduleId }) => scheduleId === name);

  test("a pattern fires and keeps its last records", async () => {
    const uid = await plant("minutely", { type: "cron", value: "* * * * *", maxExecutions: 2 });
    let before: unknown;
    for (let n = 0; n < 3; n += 1) {
      const now = await becomes(uid, (current) => {
        const newest = ((current?.state.executions ?? []) as string[]).at(-1);
        return newest !== undefined && newest !== before;
      });
      before = ((now?.state.executions ?? []) as string[]).at(-1);
      const lastSlot = Number(now?.state.lastSlot) - 60_000;
      if (n < 2)
        await suite
          .platform()
          .app.store.resources.update("main", uid, ({ state }) => ({ state: { ...state, lastSlot } }));
    }
    assert.deepEqual(
      (await of("minutely")).map(({ statusCode }: { statusCode: number }) => statusCode),
      [200, 200],
    );
    await suite.platform().call("DELETE", "/sandboxes/box/schedules/minutely");
  });

  test("a time that passed while no server ran is written down as missed", async () => {
    const uid = await plant("late", { type: "at", value: new Date(Date.now() - 3600_000).toISOString() });
    await becomes(uid, (now) => now === null);
    const [missed] = await of("late");
    assert.deepEqual([missed?.statusCode, missed?.error.split(":")[0]], [0, "Missed"]);
  });
});
