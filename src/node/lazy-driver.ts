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
  let running: Driver | null = null;
  const driver = (): Promise<Driver> => {
    opening ??= open().then((opened) => {
      running = opened;
      return opened;
    });
    return opening;
  };
  const own: Record<string | symbol, unknown> = {
    node,
    opened: async () => {
      await driver();
    },
    stop: async (workloads?: OnStop) => {
      if (running) await running.stop(workloads);
      // Nobody waits for one that is still opening; it is stopped as soon as it has.
      else opening?.then((late) => late.stop(workloads)).catch(() => {});
    },
  };
  return new Proxy(own, {
    get(target, property) {
      if (property in target || typeof property === "symbol" || property === "then") return target[property];
      return async (...args: unknown[]) => {
        const target = (await driver()) as unknown as Record<string, (...args: unknown[]) => unknown>;
        return target[property]?.(...args);
      };
    },
  }) as unknown as LazyDriver;
}
