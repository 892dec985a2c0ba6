import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { addWorkspace, draftOf, openTestStore } from "../../../test/store.ts";
import { watchDisk } from "../../lib/disk/disk-watch.ts";
import { systemClock } from "../../lib/time/clock.ts";
import type { ReconcileContext } from "../port.ts";
import { takeScheduled } from "./scheduled-snapshots.ts";

test("a schedule does not fill a disk that has no room for new work", async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-schedules-"));
  const store = await openTestStore({ dataDir, databaseUrl: null });
  const log = { error: () => {}, info: () => {} };
  const disk = watchDisk({ dataDir, freeMinBytes: Number.MAX_SAFE_INTEGER, reserveBytes: 0, log });
  t.after(async () => {
    await disk.stop();
    await store.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  await addWorkspace(store, "main");
  const snapshots = { schedule: "* * * * *", keep: 2 };
  const draft = draftOf("volume", "disk", { spec: { snapshots } });
  const state = { snapshotsSince: { schedule: snapshots.schedule, atMs: 1 } };
  await store.write((tx) => store.resources.insert(tx, { ...draft, state }));
  const volume = (await store.resources.getAcrossWorkspaces(draft.uid)) ?? assert.fail();
  const { workspace, uid } = volume;
  const context = {
    deps: { store, clock: systemClock, disk },
    signal: AbortSignal.timeout(10_000),
    record: (change) => store.resources.update(workspace, uid, change),
  } as Pick<ReconcileContext, "signal" | "record"> & { deps: object } as ReconcileContext;
  await takeScheduled({ do: "snapshot", atMs: systemClock.now() }, volume, context);
  assert.deepEqual(await store.resources.childrenOf(workspace, uid), []);
  const told = (await store.resources.getAcrossWorkspaces(uid))?.events.at(-1)?.message;
  assert.match(told ?? "", /The scheduled snapshot failed: .*nearly full/);
});
