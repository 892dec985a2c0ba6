/** Prunes old lines of the audit log and records that in the log. */
import { type Clock, DAY_MS } from "../lib/time/clock.ts";
import type { Store } from "../store/store.ts";

export const pruneAudit =
  (store: Store, clock: Clock, days: number) =>
  async (signal: AbortSignal): Promise<void> => {
    let gone = 0;
    for (let some = 1; some > 0 && !signal.aborted; gone += some)
      some = await store.audit.prune(clock.now() - days * DAY_MS);
    if (gone === 0) return;
    const [account] = await store.people.listAccountsAcrossUsers();
    await store.audit.record({
      actor: "",
      actorType: "platform",
      actorName: "platform",
      authMethod: "",
      keyId: null,
      action: "auditPrune",
      target: `${gone} lines older than ${days} days`,
      accountId: account?.id ?? null,
      workspace: null,
      outcome: "ok",
      status: 200,
      sourceAddress: "",
      requestId: "",
    });
  };
