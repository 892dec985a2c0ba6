/** What brings the world to what is recorded: tasks of jobs, and the loop over all kinds. */
import { hostname } from "node:os";
import { BEHAVIOURS } from "../kinds/behaviour.ts";
import { createTaskRunner } from "../kinds/job/runner.ts";
import { adoptUnowned } from "../kinds/node/adopt.ts";
import { endLeftovers } from "../kinds/node/leftovers.ts";
import { welcomeBack } from "../kinds/node/lost.ts";
import type { Deps } from "../kinds/port.ts";
import { type Running, Stack } from "../lib/lifecycle.ts";
import { SECOND_MS } from "../lib/time/clock.ts";
import type { LazyDriver } from "../node/lazy-driver.ts";
import { startJobScheduler } from "../reconcile/job-scheduler.ts";
import { startReconcileLoop } from "../reconcile/loop.ts";
import { keepOpening } from "./opening.ts";

interface Reconciling {
  deps: Deps;
  driver: LazyDriver;
  holder: string;
}

/** The loop starts once the machine is ready; until then creates wait. Where nothing can run, tasks stay queued. */
export function startReconciling({ deps, driver, holder }: Reconciling): Running {
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
    return startJobScheduler({ store, clock, log, runner, capacity, place: settings.nodeId, leaseMs, keepMs });
  };
  const machine = keepOpening(driver, deps.log, () => add(startJobs));
  machine.tried
    .then(() => add(() => startAdoption(deps)))
    .then(() =>
      add(() =>
        startReconcileLoop({
          deps,
          behaviours: BEHAVIOURS,
          holder,
          ...(isShared(deps) ? { welcome: (resource) => welcomeBack(resource, deps) } : {}),
        }),
      ),
    )
    .catch((error: unknown) => deps.log.error({ err: error }, "the reconcile loop did not start"));
  return {
    async stop() {
      stopped = true;
      machine.giveUp();
      await stack.stop();
    },
  };
}

/** Other servers may use the same database. */
const isShared = ({ store }: Deps): boolean => store.database.dialect === "postgres";

const ADOPT_MS = 30 * SECOND_MS;

/** Until every resource that an older version made has its node. On SQLite they got it before the start. */
async function startAdoption(deps: Deps): Promise<Running> {
  if (!isShared(deps)) return { stop: async () => {} };
  let turn = Promise.resolve();
  const attempt = async (): Promise<void> => {
    try {
      if ((await adoptUnowned(deps, hostname())) === 0) clearInterval(timer);
    } catch (error) {
      deps.log.warn({ err: error }, "resources without a node could not be adopted, trying again");
    }
  };
  const timer = setInterval(() => {
    turn = turn.then(attempt);
  }, ADOPT_MS).unref();
  await attempt();
  await endLeftovers(deps, AbortSignal.any([])).catch((error: unknown) =>
    deps.log.warn({ err: error }, "workloads that other nodes have taken over could not be ended yet"),
  );
  return {
    async stop() {
      clearInterval(timer);
      await turn;
    },
  };
}
