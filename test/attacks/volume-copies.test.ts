/** A workspace whose scheduled copies of volumes never end holds up neither deletes nor copies of other workspaces. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Deps } from "../../src/kinds/port.ts";
import { volumeBehaviour } from "../../src/kinds/volume/behaviour.ts";
import { volumeSnapshotBehaviour } from "../../src/kinds/volume-snapshot/behaviour.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import { startReconcileLoop } from "../../src/reconcile/loop.ts";
import { addWorkspace, draftOf, openTestStore } from "../store.ts";

/** More than the loop handles of one kind at a time. */
const VOLUMES = 70;

test("slow scheduled copies of one workspace delay no delete and no copy of another", async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-copies-"));
  const store = await openTestStore({ dataDir, databaseUrl: null });
  const end = Promise.withResolvers<never>();
  end.promise.catch(() => {});
  const begun = { greedy: 0, small: 0 };
  const destroyed: string[] = [];
  const nothing = (): void => {};
  const capabilities = {
    volumes: {
      create: async () => ({ sized: false, usedBytes: 0 }),
      observe: async () => null,
      destroy: async (uid: string) => void destroyed.push(uid),
    },
    volumeCopies: {
      async take(uid: string) {
        if (greedy.has(uid)) {
          begun.greedy += 1;
          return end.promise;
        }
        begun.small += 1;
        return { usedBytes: 0 };
      },
    },
  };
  const greedy = new Set<string>();
  const deps = {
    ...{ store, clock: systemClock, log: { warn: nothing, error: nothing, debug: nothing } },
    nodes: { self: { id: "here" }, shared: false, owns: () => true },
    disk: { shortage: () => null, makeRoom: nothing },
    driver: { capability: async (name: keyof typeof capabilities) => capabilities[name] },
  } as unknown as Deps;
  for (const name of ["greedy", "small"]) await addWorkspace(store, name);
  const snapshots = { schedule: "* * * * *", keep: 2 };
  const state = { snapshotsSince: { schedule: snapshots.schedule, atMs: 1 } };
  const make = async (workspace: string, name: string, more = {}) =>
    (await store.resources.create(draftOf("volume", name, { workspace, spec: { size: 16, ...more }, state }))).resource;
  for (let at = 0; at < VOLUMES; at += 1) greedy.add((await make("greedy", `v${at}`, { snapshots })).uid);
  const loop = await startReconcileLoop({
    ...{ deps, holder: "test" },
    behaviours: [volumeBehaviour, volumeSnapshotBehaviour],
  });
  t.after(async () => {
    end.reject(new Error("the test is over"));
    await loop.stop();
    await store.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const until = (uid: string, isDone: (resource: Awaited<ReturnType<typeof make>> | null) => boolean) =>
    store.resources.waitFor("small", uid, isDone, { signal: AbortSignal.timeout(30_000) });
  // The last of the greedy volumes had its turn: all places that the workspace gets are taken.
  const last = [...greedy].at(-1) ?? "";
  await store.resources.waitFor(
    "greedy",
    last,
    (now) => (now?.state.snapshotsSince as { atMs: number } | undefined)?.atMs !== 1,
    {
      signal: AbortSignal.timeout(30_000),
    },
  );

  const gone = await make("small", "gone");
  await store.resources.update("small", gone.uid, () => ({ deleted: true }));
  await until(gone.uid, (now) => now === null || now.retired);
  assert.ok(destroyed.includes(gone.uid));

  const kept = await make("small", "kept");
  const draft = draftOf("volumesnapshot", "snap_small", { workspace: "small", parent: kept.uid, status: null });
  const { uid } = (await store.resources.create(draft)).resource;
  const copied = await until(uid, (now) => now?.state.phase !== undefined);
  assert.equal(copied?.state.phase, "ready");
  assert.ok(begun.greedy > 0 && begun.greedy <= 8, String(begun.greedy));
});
