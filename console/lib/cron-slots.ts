/** The slots of a cron trigger that are known: those that started an execution, and those that were skipped. */
import { isObject, textAt } from "./members.ts";

export interface CronTrigger {
  id: string;
  schedule: string;
  timezone: string;
  isOn: boolean;
}

export interface CronSlot {
  trigger: string;
  time: string;
  /** The execution that it started; null when it was skipped. */
  execution: { id: string; status: string } | null;
  /** Why it was skipped. */
  reason: string;
}

interface Started {
  metadata: { id: string; trigger?: string; createdAt: string };
  status: string;
}

export const cronTriggersOf = (triggers: unknown): CronTrigger[] =>
  (Array.isArray(triggers) ? triggers : [])
    .filter((trigger) => isObject(trigger) && trigger.type === "cron")
    .map((trigger) => ({
      id: textAt(trigger, "id"),
      schedule: textAt(trigger, "configuration.schedule"),
      timezone: textAt(trigger, "configuration.timezone") || "UTC",
      isOn: textAt(trigger, "enabled") !== "false",
    }));

/** As the events of a job name a trigger. */
const SKIPPED = /^Trigger '([^']*)' was skipped:? ?(.*)$/s;

export function cronSlots(executions: readonly Started[], events: unknown): CronSlot[] {
  const fired = executions.flatMap(({ metadata: { id, trigger, createdAt }, status }): CronSlot[] =>
    trigger === undefined ? [] : [{ trigger, time: createdAt, execution: { id, status }, reason: "" }],
  );
  const skipped = (Array.isArray(events) ? events : []).flatMap((event): CronSlot[] => {
    const [, trigger, reason = ""] = SKIPPED.exec(textAt(event, "message")) ?? [];
    return trigger === undefined ? [] : [{ trigger, time: textAt(event, "time"), execution: null, reason }];
  });
  return [...fired, ...skipped].sort((a, b) => (a.time < b.time ? 1 : -1));
}
