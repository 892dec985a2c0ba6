import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openTestStore } from "../../test/store.ts";
import { startTasks } from "./tasks.ts";

const dataDir = mkdtempSync(join(tmpdir(), "berth-tasks-"));
const store = await openTestStore({ databaseUrl: null, dataDir });
after(async () => {
  await store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

test("a task that takes longer than its period runs once at a time, and its server keeps the task meanwhile", async () => {
  const periods = Promise.withResolvers<void>();
  let [running, most, renewals] = [0, 0, 0];
  const acquire: typeof store.leases.acquire = async (...words) => {
    const lease = await store.leases.acquire(...words);
    if (running > 0 && lease) renewals += 1;
    // The first period begins the run; the two after it find the task at work.
    if (renewals === 2) setImmediate(periods.resolve);
    return lease;
  };
  const run = async (): Promise<void> => {
    running += 1;
    most = Math.max(most, running);
    await periods.promise;
    running -= 1;
  };
  const log = { debug() {}, info() {}, warn: assert.fail, error: assert.fail };
  const tasks = startTasks({
    store: { ...store, leases: { ...store.leases, acquire } },
    log,
    holder: "one",
    tasks: [{ name: "slow", everyMs: 1, run }],
  });
  await periods.promise;
  await tasks.stop();
  assert.equal(most, 1);
});
