/** How long management requests take, by operation and status. */
import { Histogram, type Registry } from "prom-client";

export interface RequestTimes {
  observe(operation: string, status: number, seconds: number): void;
}

export function createRequestTimes(registry: Registry): RequestTimes {
  const histogram = new Histogram({
    name: "berth_api_request_seconds",
    help: "Time to answer a management request.",
    labelNames: ["operation", "status"],
    registers: [registry],
    buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30],
  });
  // The registry would sort and join the labels of every single request; there are few pairs of them.
  const known = new Map<string, Map<number, Histogram.Internal<"operation" | "status">>>();
  return {
    observe(operation, status, seconds) {
      const byStatus = known.get(operation) ?? new Map();
      if (byStatus.size === 0) known.set(operation, byStatus);
      const one = byStatus.get(status) ?? histogram.labels({ operation, status });
      byStatus.set(status, one);
      one.observe(seconds);
    },
  };
}
