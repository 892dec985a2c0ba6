/** The store of an operator's command that works without a server: an embedded database is locked meanwhile. */
import { unlock } from "../auth/secret-key.ts";
import type { Config } from "../config.ts";
import { systemClock } from "../lib/time/clock.ts";
import { lockDataFolder } from "../store/database/data-lock.ts";
import { openStore, type Store } from "../store/store.ts";

/** `doing` tells others who holds the database and why. */
export async function withOwnStore<T>(config: Config, doing: string, work: (store: Store) => Promise<T>): Promise<T> {
  const owner = config.database_url ? null : lockDataFolder(config.data, `pid ${process.pid}, ${doing}`);
  try {
    const store = await openStore({
      databaseUrl: config.database_url ?? null,
      dataDir: config.data,
      unlock: unlock(config),
      clock: systemClock,
      onError: () => {}, // a lost connection fails the work itself
    });
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  } finally {
    await owner?.stop();
  }
}
