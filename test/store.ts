/** A store of its own for a test, with nothing between it and the database. */

import { uuidv7 } from "../src/lib/ids.ts";
import { systemClock } from "../src/lib/time/clock.ts";
import type { Draft } from "../src/store/resources/resources.ts";
import { unlockWith } from "../src/store/sealing/key-records.ts";
import { openStore, type Store, type StoreOptions } from "../src/store/store.ts";
import { closeAtEnd } from "./closing.ts";
import type { TestPlace } from "./databases.ts";

export async function openTestStore(
  { dataDir, databaseUrl }: Pick<TestPlace, "dataDir" | "databaseUrl">,
  options: Partial<StoreOptions> = {},
): Promise<Store> {
  const store = await openStore({
    dataDir,
    databaseUrl,
    unlock: unlockWith(Buffer.alloc(32, 1)),
    clock: systemClock,
    onError: (error) => console.error(error),
    ...options,
  });
  const closed = closeAtEnd(() => store.close());
  return {
    ...store,
    close: () => {
      closed();
      return store.close();
    },
  };
}

/** A resource of the workspace `main`. Ids only grow: whoever has a clock of his own gives it one of that time. */
export const draftOf = (
  kind: string,
  name: string,
  { uid = uuidv7(Date.now()), ...more }: Partial<Draft> = {},
): Draft => ({
  ...{ workspace: "main", kind, parent: "", uid, name, metadata: {}, spec: {}, secrets: {}, state: {} },
  ...{ status: "DEPLOYED", events: [], revision: false, actor: "test", settled: true },
  ...more,
});

/** Drives of the workspace `main`, in this order. */
export async function addDrives(store: Store, drives: readonly { name: string; displayName: string }[]): Promise<void> {
  await store.write(async (tx) => {
    for (const { name, displayName } of drives)
      await store.resources.insert(tx, draftOf("drive", name, { metadata: { displayName } }));
  });
}

export async function addWorkspace(store: Store, name = "main", accountId = "a"): Promise<void> {
  const blank = { displayName: "", region: "", labels: {}, groupMappings: [], runtime: {} };
  await store.write((tx) => store.workspaces.insert(tx, { name, accountId, ...blank }, "test"));
}
