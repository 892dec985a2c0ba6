import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { addWorkspace, draftOf, openTestStore } from "../../test/store.ts";
import { Activity } from "../lib/activity.ts";
import { systemClock } from "../lib/time/clock.ts";
import type { Store } from "../store/store.ts";
import type { Workload } from "./deps.ts";
import { createDirectory, type Directory } from "./directory.ts";

let store: Store;
let directory: Directory;
const activity = new Activity(systemClock);
const dataDir = mkdtempSync(join(tmpdir(), "berth-test-"));

before(async () => {
  store = await openTestStore({ dataDir, databaseUrl: null });
  await addWorkspace(store, "ws");
  directory = createDirectory({
    ...{ store, clock: systemClock, activity, isServed: () => false, makerOf: async () => null },
    place: { regions: ["local"], flavors: [] },
    self: null,
  });
});
after(async () => {
  await directory.stop();
  await store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const endpoint = { kind: "unix", node: "n", dir: "/nowhere" };

async function sandbox(name: string): Promise<Workload> {
  await store.resources.create(draftOf("sandbox", name, { workspace: "ws" }));
  const found = await directory.resolve({ by: "name", kind: "sandbox", workspace: "ws", name });
  assert.ok(found);
  return found;
}

/** Records a running instance, as the reconcile loop does after a start. */
const observe = (uid: string): Promise<unknown> =>
  store.resources.update("ws", uid, ({ state }) => ({
    state: { ...state, instances: [{ uid, revision: null, endpoint, phase: "running" }] },
  }));

test("whoever asked first may leave; the others still get the instance", async () => {
  const workload = await sandbox("shared");
  assert.equal(directory.ready(workload, null), null);
  const first = new AbortController();
  const second = new AbortController();
  const leaving = directory.wake(workload, null, { signal: first.signal });
  const staying = directory.wake(workload, null, { signal: second.signal });
  first.abort(new Error("left"));
  await observe(workload.uid);
  await assert.rejects(leaving, /left/);
  const lease = await staying;
  assert.equal(activity.openOf(workload.uid), 1);
  lease.release();
  assert.equal(activity.openOf(workload.uid), 0);
});

test("a workload that fails to start says why", async () => {
  const workload = await sandbox("broken");
  const waking = directory.wake(workload, null, { signal: new AbortController().signal });
  await store.resources.update("ws", workload.uid, () => ({
    status: "FAILED",
    event: { type: "start", message: "Exit code 1." },
  }));
  await assert.rejects(waking, { code: "WORKLOAD_START_FAILED", insight: "Exit code 1." });
});

test("a deleted workload is not found, and was not kept", async () => {
  const workload = await sandbox("gone");
  await store.resources.update("ws", workload.uid, () => ({ deleted: true, status: "DELETING" }));
  assert.equal(await directory.resolve({ by: "name", kind: "sandbox", workspace: "ws", name: "gone" }), null);
});

test("a copy that is on its way out answers only those who have a session there", async () => {
  const workload = await sandbox("draining");
  await observe(workload.uid);
  await directory.resolve({ by: "name", kind: "sandbox", workspace: "ws", name: "draining" });
  const lease = directory.ready(workload, null);
  assert.ok(lease);
  await store.resources.update("ws", workload.uid, ({ state }) => ({
    state: { ...state, instances: [{ uid: workload.uid, revision: "7", endpoint, phase: "draining" }] },
  }));
  await directory.resolve({ by: "name", kind: "sandbox", workspace: "ws", name: "draining" });
  assert.equal(directory.ready(workload, "7"), null);
  assert.equal(directory.rejoin(workload, lease.key)?.revision, "7");
  assert.equal(directory.rejoin(workload, "another"), null);
});
