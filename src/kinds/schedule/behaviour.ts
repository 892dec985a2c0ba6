import { toIso } from "../../lib/time/clock.ts";
import { checkedDurationMs, checkedFutureMs } from "../lifetime.ts";
import type { Behaviour } from "../port.ts";
import { checkCron } from "../workload/cron.ts";
import { scheduleReconciler } from "./fire.ts";
import { EXECUTIONS_KEPT_DEFAULT, SCHEDULES_MAX, type Schedule, schedule } from "./kind.ts";

const TIMEOUT_DEFAULT_SECONDS = 600;
const NUMBERED = /^schedule-(\d{1,9})$/;

export const scheduleBehaviour: Behaviour<Schedule> = {
  kind: schedule,
  prepare({ spec }, { current, deps }) {
    const now = deps.clock.now();
    if (spec.type === "cron") checkCron("value", { schedule: spec.value });
    else if (spec.type === "at") checkedFutureMs("value", spec.value, now, current?.spec.value);
    else {
      spec.value = toIso(now + checkedDurationMs("value", spec.value));
      spec.type = "at";
    }
    spec.input.keepAlive ??= true;
    spec.input.timeout ??= TIMEOUT_DEFAULT_SECONDS;
    spec.maxExecutions ??= EXECUTIONS_KEPT_DEFAULT;
  },
  /** Numbers schedules from 0. A number is not reused while a higher one exists. */
  async generateName(tx, scope, { store }) {
    const there = await store.resources.childrenIn(tx, scope.parent, SCHEDULES_MAX + 1, schedule.name);
    const numbers = there.map(({ name }) => Number(NUMBERED.exec(name)?.[1] ?? -1));
    return `schedule-${Math.max(-1, ...numbers) + 1}`;
  },
  reconciler: scheduleReconciler,
  narrow: ({ spec }, { type }) => type === undefined || spec.type === type,
};
