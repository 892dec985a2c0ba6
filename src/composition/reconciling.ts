/** What brings the world to what is recorded: tasks of jobs, and the loop over all kinds. */
import { BEHAVIOURS } from "../kinds/behaviour.ts";
import { createTaskRunner } from "../kinds/job/runner.ts";
import type { Deps } from "../kinds/port.ts";
import { type Running, Stack } from "../lib/lifecycle.ts";
import type { LazyDriver } from "../node/lazy-driver.ts";
import { startJobScheduler } from "../reconcile/job-scheduler.ts";
import { startReconcileLoop } from "../reconcile/loop.ts";

interface Reconciling {
  deps: Deps;
  driver: LazyDriver;
  holder: string;
  place: string;
}

/** The loop starts once the machine is ready; until then creates wait. Where nothing can run, tasks stay queued. */
export function startReconciling({ deps, driver, holder, place }: Reconciling): Running {
  const stack = new Stack();
  let stopped = false;
  const add = async (start: () => Promise<Running>): Promise<void> => {
    if (stopped) return;
    const running = stack.add(await start());
    if (stopped) await running.stop();
  };
  const startJobs = (): Promise<Running> => {
    const { store, clock, log, settings } = deps;
    const capacity = { slots: settings.jobSlots, memoryMb: settings.jobMemoryMb };
    const runner = createTaskRunner(deps);
    const { jobLeaseMs: leaseMs, executionsKeptMs: keepMs } = settings;
    return startJobScheduler({ store, clock, log, runner, capacity, place, leaseMs, keepMs });
  };
  driver
    .opened()
    .then(() => add(startJobs))
    .catch((error: unknown) => deps.log.error({ err: error }, "workloads cannot run on this machine"))
    .then(() => add(() => startReconcileLoop({ deps, behaviours: BEHAVIOURS, holder })))
    .catch((error: unknown) => deps.log.error({ err: error }, "the reconcile loop did not start"));
  return {
    async stop() {
      stopped = true;
      await stack.stop();
    },
  };
}
