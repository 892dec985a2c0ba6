/**
 * A driver that opens in the background: the server answers at once, and whoever needs a workload waits until the
 * machine is ready for it. What kept it from opening is told to every caller.
 */
import type { Driver, OnStop } from "./driver.ts";

export interface LazyDriver extends Driver {
  /** Starts opening; rejects with the reason when that fails. */
  opened(): Promise<void>;
}

export function lazyDriver(node: string, open: () => Promise<Driver>): LazyDriver {
  let opening: Promise<Driver> | null = null;
  const driver = (): Promise<Driver> => {
    opening ??= open();
    return opening;
  };
  const own: Record<string | symbol, unknown> = {
    node,
    opened: async () => {
      await driver();
    },
    stop: async (workloads?: OnStop) => {
      // One that never opened, or could not, has nothing to stop.
      const running = await opening?.catch(() => null);
      await running?.stop(workloads);
    },
  };
  return new Proxy(own, {
    get(target, property) {
      if (property in target || typeof property === "symbol" || property === "then") return target[property];
      return async (...args: unknown[]) => {
        const running = (await driver()) as unknown as Record<string, (...args: unknown[]) => unknown>;
        return running[property]?.(...args);
      };
    },
  }) as unknown as LazyDriver;
}
