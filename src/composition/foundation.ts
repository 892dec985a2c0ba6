/** The first phase: the data folder is ours, the database is open, and there is a workspace to begin with. */
import { Registry } from "prom-client";
import { type Bootstrapped, bootstrap, settleWorkspace } from "../auth/bootstrap.ts";
import { unlockOrMake } from "../auth/secret-key.ts";
import { quotasByKind } from "../kinds/quota/quotas.ts";
import { type DiskWatch, watchDisk } from "../lib/disk/disk-watch.ts";
import { openStore, type Store } from "../store/store.ts";
import { startKeyRotation } from "./key-rotation.ts";
import type { Start } from "./start.ts";

export interface Foundation {
  disk: DiskWatch;
  store: Store;
  registry: Registry;
  bootstrapped: Bootstrapped;
  /** Goes over to the next secret key, when there is one. */
  rotateKey(): void;
}

export async function layFoundation({ config, clock, log, stack }: Start): Promise<Foundation> {
  const disk = stack.add(
    watchDisk({
      dataDir: config.data,
      freeMinBytes: config.disk_free_min * 2 ** 20,
      reserveBytes: config.disk_reserve * 2 ** 20,
      log,
    }),
  );
  const store = await openStore({
    databaseUrl: config.database_url ?? null,
    dataDir: config.data,
    unlock: unlockOrMake(config),
    clock,
    makeRoom: () => disk.makeRoom(),
    quotas: quotasByKind(config.quotas),
    onError: (error) => log.error({ err: error }, "the database connection failed"),
  });
  stack.defer(() => store.close());
  const keyRotation = stack.add(startKeyRotation({ store, settings: config, log }));
  const bootstrapped = await bootstrap(store, {
    workspace: config.workspace,
    region: config.region,
    apiKey: config.api_key,
  });
  for (const { name, status } of await store.workspaces.listAcrossAccounts())
    if (status !== "ready") await settleWorkspace(store, name);
  return { disk, store, registry: new Registry(), bootstrapped, rotateKey: () => keyRotation.rotate() };
}
