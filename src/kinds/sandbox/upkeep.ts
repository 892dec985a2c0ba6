/** Periodic tasks for sandboxes: purge old records, end machines that are over, store the time of last use. */

import { MINUTE_MS, SECOND_MS } from "../../lib/time/clock.ts";
import { parseDurationMs } from "../../lib/time/duration.ts";
import { ofKind, type Resource } from "../../store/resources/resource.ts";
import type { KindTask } from "../kind-task.ts";
import type { Deps } from "../port.ts";
import { volume } from "../volume/kind.ts";
import { sandbox } from "./kind.ts";
import { pressureTask } from "./pressure.ts";
import { stateOf } from "./recorded.ts";

const PURGE_MS = 15 * SECOND_MS;
const SWEEP_MS = 30 * SECOND_MS;
const LAST_USED_MS = 30 * SECOND_MS;
const RETENTION_DEFAULT_MS = 5 * MINUTE_MS;
const PAGE = 500;

/** Every server runs these for the sandboxes of its own machine. */
export const sandboxTasks = (deps: Deps): KindTask[] => [
  {
    name: `purge-terminated/${deps.settings.nodeId}`,
    everyMs: PURGE_MS,
    run: (signal) => purgeTerminated(deps, signal),
  },
  {
    name: `sweep-orphans/${deps.settings.nodeId}`,
    everyMs: SWEEP_MS,
    run: (signal) => sweepOrphans(deps, signal),
  },
  {
    name: `keep-last-used/${deps.settings.nodeId}`,
    everyMs: LAST_USED_MS,
    run: (signal) => keepLastUsed(deps, signal),
  },
  pressureTask(deps),
];

/** Deletes records of terminated sandboxes after their retention time. */
export async function purgeTerminated(deps: Deps, signal: AbortSignal): Promise<void> {
  await purge(sandbox.name, deps, signal);
  await purge(volume.name, deps, signal);
}

async function purge(kind: string, { store, clock, driver, nodes }: Deps, signal: AbortSignal): Promise<void> {
  for (let after = ""; ; ) {
    const page = await store.resources.listRetiredAcrossWorkspaces(kind, after, PAGE);
    for (const record of page) {
      signal.throwIfAborted();
      if (!nodes.owns(record.node) || goneSince(record) + retentionMs(record) > clock.now()) continue;
      // The machine goes first: without the record, no task would know that it can be removed.
      if (kind === sandbox.name) await driver.destroy(record.uid);
      await store.resources.delete(record.workspace, record.uid);
    }
    after = page.at(-1)?.uid ?? "";
    if (page.length < PAGE) return;
  }
}

/** A volume has no other time of its end than that of its deletion. */
const goneSince = (record: Resource): number =>
  (record.kind === sandbox.name ? stateOf(record).terminatedAt : undefined) ?? record.deletedAt ?? record.updatedAt;

function retentionMs(record: Resource): number {
  const { lifecycle } = record.kind === sandbox.name ? ofKind(sandbox, record).spec : {};
  const { terminatedRetention } = lifecycle ?? {};
  return (terminatedRetention && parseDurationMs(terminatedRetention)) || RETENTION_DEFAULT_MS;
}

/**
 * Ends machines whose sandbox record says that the sandbox is over. Other workloads of the driver (job tasks, builds,
 * workloads of another database) are left alone; see node/leftovers.ts for those that went to another node.
 */
export async function sweepOrphans({ store, driver, log }: Deps, signal: AbortSignal): Promise<void> {
  for (const { uid } of await driver.list()) {
    signal.throwIfAborted();
    const record = await store.resources.getAcrossWorkspaces(uid);
    if (record?.kind !== sandbox.name || !record.retired) continue;
    log.warn({ uid, name: record.name }, "a machine outlived its sandbox and is ended");
    await driver.destroy(uid);
  }
}

/** Stores the last use of all sandboxes in one write, because it changes with every request. */
export async function keepLastUsed({ store, activity, clock }: Deps, signal: AbortSignal): Promise<void> {
  const used = activity.usedSince(clock.now() - 2 * LAST_USED_MS);
  const records: Resource[] = [];
  for (const uid of used.keys()) {
    signal.throwIfAborted();
    const record = await store.resources.getAcrossWorkspaces(uid);
    if (record?.kind === sandbox.name && !record.retired) records.push(record);
  }
  if (records.length === 0) return;
  await store.write(async (tx) => {
    for (const { workspace, uid } of records) {
      const lastUsedAt = used.get(uid) ?? 0;
      await store.resources.modify(tx, workspace, uid, (current) =>
        current.retired || (stateOf(current).lastUsedAt ?? 0) >= lastUsedAt
          ? null
          : { state: { ...current.state, lastUsedAt } },
      );
    }
  });
}
