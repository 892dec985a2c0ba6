/** Periodic tasks of the whole platform: of several servers on one database, one runs each. */
import type { Log } from "../kinds/port.ts";
import type { Running } from "../lib/lifecycle.ts";
import type { Store } from "../store/store.ts";

export interface PeriodicTask {
  name: string;
  everyMs: number;
  run(signal: AbortSignal): Promise<void>;
}

export interface TasksOptions {
  store: Store;
  log: Log;
  holder: string;
  tasks: readonly PeriodicTask[];
}

export function startTasks({ store, log, holder, tasks }: TasksOptions): Running {
  const abort = new AbortController();
  const running = new Set<Promise<void>>();
  const busy = new Set<string>();
  const once = async (task: PeriodicTask): Promise<void> => {
    try {
      // The lease is longer than the period, so that the same server keeps the task, also during a run of many periods.
      const lease = await store.leases.acquire(`task/${task.name}`, holder, task.everyMs * 2);
      if (!lease || busy.has(task.name)) return;
      busy.add(task.name);
      await task.run(abort.signal).finally(() => busy.delete(task.name));
    } catch (error) {
      if (!abort.signal.aborted) log.warn({ err: error, task: task.name }, "a periodic task failed");
    }
  };
  const timers = tasks.map((task) =>
    setInterval(() => {
      const work = once(task).finally(() => running.delete(work));
      running.add(work);
    }, task.everyMs).unref(),
  );
  return {
    async stop() {
      abort.abort();
      for (const timer of timers) clearInterval(timer);
      await Promise.all(running);
    },
  };
}
