/** The instances that run on this machine, measured. */
import type { OutboundRules } from "../kinds/workload/outbound-rules.ts";
import { MINUTE_MS } from "../lib/time/clock.ts";
import type { RunningInstance } from "../metering/resource-metrics/recorder.ts";
import type { LazyDriver } from "../node/lazy-driver.ts";
import type { Store } from "../store/store.ts";

/** Lease of the server that measures where every server sees the instances of all. */
const LEASE_MS = MINUTE_MS;

interface Parts {
  driver: LazyDriver;
  /** Knows the resource that an instance belongs to. */
  rules: Pick<OutboundRules, "ownerOf">;
  leases: Store["leases"];
  holder: string;
  /** See Nodes.shared. */
  shared: boolean;
}

export function runningInstances({ driver, rules, leases, holder, shared }: Parts): () => Promise<RunningInstance[]> {
  return async () => {
    if (!driver.isOpen) return [];
    if (shared && (await leases.acquire("resource-metrics", holder, LEASE_MS)) === null) return [];
    const found: RunningInstance[] = [];
    for (const { uid, state } of await driver.list()) {
      if (state !== "running") continue;
      const owner = await rules.ownerOf(uid);
      if (owner === null) continue;
      // It may end between the two looks.
      const stats = await driver.stats(uid).catch(() => null);
      if (stats === null) continue;
      const { cpuMs, memoryBytes, diskBytes } = stats;
      found.push({ uid, owner: owner.uid, cpuMs, memoryBytes, diskBytes });
    }
    return found;
  };
}
