/** What the workloads of this machine send out, by both ways: a network of their own, or the platform's proxy. */
import type { Driver } from "./driver.ts";

export function createTraffic(driver: () => Pick<Driver, "observe" | "stats">) {
  let forwarded = new Map<string, number>();
  return {
    /** The proxy passed on so many more bytes of the workload. */
    onBytes(uid: string, sentBytes: number): void {
      forwarded.set(uid, (forwarded.get(uid) ?? 0) + sentBytes);
    },

    /** Through the proxy since this was last asked, by workload. */
    takeForwarded(): ReadonlyMap<string, number> {
      const taken = forwarded;
      forwarded = new Map();
      return taken;
    },

    /** Through the workload's own network since it began; null when it is over. */
    async sentBytes(uid: string): Promise<number | null> {
      const observed = await driver().observe(uid);
      if (!observed || observed.state === "exited") return null;
      // It may end between the two looks.
      return (
        (
          await driver()
            .stats(uid)
            .catch(() => null)
        )?.sentBytes ?? 0
      );
    },
  };
}
