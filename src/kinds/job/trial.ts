/**
 * Chooses the revision of an execution while a canary has a share. A counter common to all servers numbers the
 * executions, so that of any hundred in a row exactly `canaryPercent` run the canary.
 */
import { liveCanary } from "../../contract/revision-share.ts";
import { DAY_MS } from "../../lib/time/clock.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Platform } from "../port.ts";
import { type Runnable, runnableOf } from "./runnable.ts";

/** A counter that was not used for this long starts again at zero. */
const TURNS_KEPT_MS = 30 * DAY_MS;

export interface Trial {
  active: Runnable;
  canary: Runnable;
  percent: number;
}

/** Null when no canary has a share. */
export async function trialOf(job: Resource, active: Runnable, deps: Platform): Promise<Trial | null> {
  const live = liveCanary(job);
  if (!live) return null;
  const canary = await runnableOf(job, deps, live.revision);
  return canary.revision.id === active.revision.id ? null : { active, canary, percent: live.percent };
}

export async function takeTurn(
  { uid }: Resource,
  { active, canary, percent }: Trial,
  deps: Platform,
): Promise<Runnable> {
  const key = `job-trial/${uid}/${canary.revision.id}`;
  const turn = await deps.store.records.update(key, deps.clock.now() + TURNS_KEPT_MS, (value) => ({
    value: String(Number(value ?? 0) + 1),
    result: Number(value ?? 0),
  }));
  return isCanaryTurn(turn, percent) ? canary : active;
}

/** Spreads canary turns evenly: the canary is due whenever its share of the turns reaches the next whole number. */
export const isCanaryTurn = (turn: number, percent: number): boolean =>
  Math.floor(((turn + 1) * percent) / 100) > Math.floor((turn * percent) / 100);
