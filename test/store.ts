/** A store of its own for a test, with nothing between it and the database. */

import { systemClock } from "../src/lib/clock.ts";
import { uuidv7 } from "../src/lib/ids.ts";
import { openStore, type Store, type StoreOptions } from "../src/store/store.ts";
import type { TestPlace } from "./databases.ts";

export const openTestStore = (place: Pick<TestPlace, "dataDir" | "databaseUrl">, options: Partial<StoreOptions> = {}) =>
  openStore({
    dataDir: place.dataDir,
    databaseUrl: place.databaseUrl,
    secretKey: Buffer.alloc(32, 1),
    clock: systemClock,
    onError: (error) => console.error(error),
    ...options,
  });

/** Drives of the workspace `main`, in this order. */
export async function addDrives(store: Store, drives: readonly { name: string; displayName: string }[]): Promise<void> {
  await store.write(async (tx) => {
    for (const { name, displayName } of drives)
      await store.resources.insert(tx, {
        ...{ workspace: "main", kind: "drive", parent: "", uid: uuidv7(Date.now()), name, metadata: { displayName } },
        ...{ spec: {}, secrets: {}, state: {}, events: [] },
        ...{ status: "DEPLOYED", revision: false, actor: "test", settled: true },
      });
  });
}

export async function addWorkspace(store: Store, name = "main", accountId = "a"): Promise<void> {
  const blank = { displayName: "", region: "", labels: {}, groupMappings: [], runtime: {} };
  await store.write((tx) => store.workspaces.insert(tx, { name, accountId, ...blank }, "test"));
}
