/** When a schedule is due. Pure: every rule is a row of the test table. */
import { MINUTE_MS } from "../../lib/time/clock.ts";
import { cronTimes, dueTimes } from "../../lib/time/cron.ts";
import type { Plan } from "../port.ts";
import type { Schedule } from "./kind.ts";

/** Longest wait between looks: the system clock may be changed, and timers have a maximum delay. */
const LOOK_AGAIN_MAX_MS = 12 * 60 * MINUTE_MS;

export type ScheduleStep = { do: "fire"; slot: number } | { do: "miss"; slot: number };

export function planSchedule(schedule: Schedule, nowMs: number): Plan<ScheduleStep> {
  if (schedule.deletedAt !== null) return { steps: [] };
  const { type, value } = schedule.spec;
  const { lastSlot = 0 } = schedule.state;
  const next = (afterMs: number): number | null =>
    type === "cron" ? cronTimes(value, "UTC")(afterMs) : atAfter(value, afterMs);
  // A changed schedule starts again: slots before the change are not due.
  const since = type === "cron" ? Math.max(lastSlot, schedule.createdAt, schedule.updatedAt) : lastSlot;
  const due = dueTimes(next, since, nowMs);
  if (due === null) return { steps: [] };
  const { first, fire } = due;
  if (first > nowMs) return { steps: [], againMs: Math.min(first - nowMs, LOOK_AGAIN_MAX_MS) };
  return { steps: [fire === null ? { do: "miss", slot: first } : { do: "fire", slot: fire }] };
}

const atAfter = (date: string, afterMs: number): number | null => {
  const atMs = Date.parse(date);
  return atMs > afterMs ? atMs : null;
};
