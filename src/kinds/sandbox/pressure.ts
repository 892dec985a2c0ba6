/**
 * Density: when memory of the machine runs short, sandboxes give theirs back before their time, least used first. A
 * sleeping one in gVisor goes to disk; one that is awake and idle falls asleep, where that frees memory: because it can
 * go to disk next, or because the machine has swap. The record is marked (`pressedAt`), and the plan does the rest.
 */
import { lookAtMemory, type MemoryLook } from "../../lib/memory-look.ts";
import { SECOND_MS } from "../../lib/time/clock.ts";
import type { KindTask } from "../kind-task.ts";
import type { Deps } from "../port.ts";
import { sandbox as sandboxKind } from "./kind.ts";
import { stateOf } from "./recorded.ts";

const LOOK_MS = 2 * SECOND_MS;
/** Chosen at one look: what a machine writes to disk until the next. */
const AT_ONCE = 8;
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
export function chosen(candidates: readonly Candidate[], { bytes, swaps }: Shortage): Candidate[] {
  const useful = candidates.filter(({ sinks, state }) => sinks || (swaps && state === "running"));
  const order = useful.toSorted(
    (a, b) => Number(a.state === "running") - Number(b.state === "running") || a.lastUsedMs - b.lastUsedMs,
  );
  let freed = 0;
  return order.filter((each, index) => {
    if (index >= AT_ONCE || freed >= bytes) return false;
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
  for (const { uid } of chosen(await candidates(deps, sinking), shortage)) {
    signal.throwIfAborted();
    const record = await store.resources.getAcrossWorkspaces(uid);
    if (record)
      await store.resources.update(record.workspace, uid, ({ state }) => ({
        state: { ...state, pressedAt: clock.now() },
      }));
  }
}

async function candidates({ driver, store, activity, clock }: Deps, sinking: boolean): Promise<Candidate[]> {
  const found: Candidate[] = [];
  const nowMs = clock.now();
  for (const { uid, state, grade, hibernated } of await driver.list()) {
    if (hibernated || state === "exited" || activity.openOf(uid) > 0) continue;
    const record = await store.resources.getAcrossWorkspaces(uid);
    if (record?.kind !== sandboxKind.name || record.retired || record.deletedAt !== null) continue;
    const { lastUsedAt = 0, idleSince = 0, wantedAt = 0, hibernateTriedAt = 0, pressedAt = 0 } = stateOf(record);
    const lastUsedMs = Math.max(lastUsedAt, activity.lastOf(uid), state === "running" ? idleSince : 0, wantedAt);
    if (Math.max(lastUsedMs, hibernateTriedAt, pressedAt) > nowMs - REST_MS) continue;
    const { memoryBytes } = await driver.stats(uid);
    found.push({ uid, state, sinks: sinking && grade === "vm-like", lastUsedMs, memoryBytes });
  }
  return found;
}
