/** Periodic work about sandboxes: records past their time, machines without a record, the time of last use. */

import { MINUTE_MS, SECOND_MS } from "../../lib/time/clock.ts";
import { parseDurationMs } from "../../lib/time/duration.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { KindTask } from "../kind-task.ts";
import type { Deps } from "../port.ts";
import { volume } from "../volume/kind.ts";
import { sandbox } from "./kind.ts";
import { stateOf } from "./plan.ts";

const PURGE_MS = 15 * SECOND_MS;
const SWEEP_MS = 30 * SECOND_MS;
const LAST_USED_MS = 30 * SECOND_MS;
const RETENTION_DEFAULT_MS = 5 * MINUTE_MS;
const PAGE = 500;

/** What concerns a machine is done by the server of that machine; what concerns records, by any one. */
export const sandboxTasks = (deps: Deps): KindTask[] => [
  { name: "purge-terminated", everyMs: PURGE_MS, run: (signal) => purgeTerminated(deps, signal) },
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
];

/** Records of what is gone stay to be looked at for a while. */
export async function purgeTerminated(deps: Deps, signal: AbortSignal): Promise<void> {
  await purge(sandbox.name, deps, signal);
  await purge(volume.name, deps, signal);
}

async function purge(kind: string, { store, clock, driver }: Deps, signal: AbortSignal): Promise<void> {
  for (let after = ""; ; ) {
    const page = await store.resources.listRetiredAcrossWorkspaces(kind, after, PAGE);
    for (const record of page) {
      signal.throwIfAborted();
      if (goneSince(record) + retentionMs(record) > clock.now()) continue;
      // Once the record is gone, nobody knows whose machine it was.
      if (kind === sandbox.name) await driver.destroy(record.uid);
      await store.resources.delete(record.workspace, record.uid);
    }
    after = page.at(-1)?.uid ?? "";
    if (page.length < PAGE) return;
  }
}

const goneSince = ({ state, deletedAt, updatedAt }: Resource): number =>
  typeof state.terminatedAt === "number" ? state.terminatedAt : (deletedAt ?? updatedAt);

function retentionMs({ spec }: Resource): number {
  const { terminatedRetention } = (spec.lifecycle ?? {}) as { terminatedRetention?: string };
  return (terminatedRetention && parseDurationMs(terminatedRetention)) || RETENTION_DEFAULT_MS;
}

/**
 * Ends machines whose sandbox is over: its record says so. Whatever else the driver has (tasks of jobs, builds, what
 * another database knows) is not this sweep's to judge.
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

/** All of them in one write: the time of the last request changes with every request. */
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
