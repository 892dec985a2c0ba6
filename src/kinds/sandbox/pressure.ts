/**
 * Density: when memory of the machine runs short, sandboxes give theirs back before their time, least used first. A
 * sleeping one in gVisor goes to disk; one that is awake and idle falls asleep, where that frees memory: because it can
 * go to disk next, or because the machine has swap. The record is marked (`pressedAt`), and the plan does the rest.
 */
import { availableParallelism } from "node:os";
import { lookAtMemory, type MemoryLook } from "../../lib/memory-look.ts";
import { SECOND_MS } from "../../lib/time/clock.ts";
import type { KindTask } from "../kind-task.ts";
import type { Deps } from "../port.ts";
import { sandbox as sandboxKind } from "./kind.ts";
import { stateOf } from "./recorded.ts";

const LOOK_MS = SECOND_MS;
/** Sandboxes on their way at a time: writing one takes a processor, and the others are for those that wake. */
const AT_ONCE = Math.max(1, Math.floor(availableParallelism() / 2));
/** One that was chosen this long ago and is still in memory does not count as on its way any more. */
const PENDING_MS = 10 * SECOND_MS;
/** And this long ago: it may be chosen again. */
const AGAIN_MS = 60 * SECOND_MS;
/** Waiting for memory in more of the time than this is a shortage, whatever is available. */
const STALLED_PERCENT_MAX = 20;
/** A sandbox that was used, or could not be written, a moment ago is left alone. */
const REST_MS = 5 * SECOND_MS;

export interface Candidate {
  uid: string;
  state: "running" | "frozen";
  /** It can go to disk. */
  sinks: boolean;
  lastUsedMs: number;
  memoryBytes: number;
}

export interface Shortage {
  bytes: number;
  swaps: boolean;
}

/** Null while there is enough. `keepBytes`: 0 turns it off. */
export function shortageOf({ availableBytes, stalledPercent, swaps }: MemoryLook, keepBytes: number): Shortage | null {
  if (keepBytes === 0) return null;
  const bytes = keepBytes - availableBytes;
  if (bytes > 0) return { bytes, swaps };
  return stalledPercent > STALLED_PERCENT_MAX ? { bytes: 1, swaps } : null;
}

/** Sleeping ones before those that are awake, then the least used, until they make up for what is short. */
export function chosen(candidates: readonly Candidate[], { bytes, swaps }: Shortage, atOnce = AT_ONCE): Candidate[] {
  const useful = candidates.filter(({ sinks, state }) => sinks || (swaps && state === "running"));
  const order = useful.toSorted(
    (a, b) => Number(a.state === "running") - Number(b.state === "running") || a.lastUsedMs - b.lastUsedMs,
  );
  let freed = 0;
  return order.filter((each, index) => {
    if (index >= atOnce || freed >= bytes) return false;
    freed += each.memoryBytes;
    return true;
  });
}

export const pressureTask = (deps: Deps): KindTask => ({
  name: `ease-memory/${deps.settings.nodeId}`,
  everyMs: LOOK_MS,
  run: (signal) => easeMemory(deps, signal),
});

export async function easeMemory(deps: Deps, signal: AbortSignal, look = lookAtMemory()): Promise<void> {
  const shortage = look && shortageOf(look, deps.settings.memoryFreeMinBytes);
  if (!shortage || (await deps.driver.capability("freezing")) === null) return;
  const sinking = (await deps.driver.capability("hibernation")) !== null;
  if (!sinking && !shortage.swaps) return;
  const { store, clock } = deps;
  const { found, pending } = await candidates(deps, sinking);
  for (const { uid } of chosen(found, shortage, Math.max(0, AT_ONCE - pending))) {
    signal.throwIfAborted();
    const record = await store.resources.getAcrossWorkspaces(uid);
    if (record)
      await store.resources.update(record.workspace, uid, ({ state }) => ({
        state: { ...state, pressedAt: clock.now() },
      }));
  }
}

interface Candidates {
  found: Candidate[];
  /** Those that were chosen before and are not done yet. */
  pending: number;
}

async function candidates({ driver, store, activity, clock }: Deps, sinking: boolean): Promise<Candidates> {
  const found: Candidate[] = [];
  let pending = 0;
  const nowMs = clock.now();
  for (const { uid, state, grade, hibernated } of await driver.list()) {
    if (hibernated || state === "exited" || activity.openOf(uid) > 0) continue;
    const record = await store.resources.getAcrossWorkspaces(uid);
    if (record?.kind !== sandboxKind.name || record.retired || record.deletedAt !== null) continue;
    const { lastUsedAt = 0, idleSince = 0, wantedAt = 0, hibernateTriedAt = 0, pressedAt = 0 } = stateOf(record);
    const lastUsedMs = Math.max(lastUsedAt, activity.lastOf(uid), state === "running" ? idleSince : 0, wantedAt);
    const waitingMs = pressedAt > Math.max(lastUsedMs, idleSince, hibernateTriedAt) ? nowMs - pressedAt : AGAIN_MS;
    if (waitingMs < PENDING_MS) pending += 1;
    // Something inside may keep it awake, and others have their turn first.
    if (waitingMs < AGAIN_MS || Math.max(lastUsedMs, hibernateTriedAt) > nowMs - REST_MS) continue;
    const { memoryBytes } = await driver.stats(uid);
    found.push({ uid, state, sinks: sinking && grade === "vm-like", lastUsedMs, memoryBytes });
  }
  return { found, pending };
}
