/** What a resource uses and is asked for, over time. */
import { call } from "./call.ts";
import { useAnswer } from "./query.ts";

export interface MetricPoint {
  time: string;
  cpus: number | null;
  memoryBytes: number | null;
  diskBytes: number | null;
  requests: number;
  errors: number;
  p95Ms: number | null;
  coldStarts: number;
}

export interface Metrics {
  step: number;
  points: readonly MetricPoint[];
}

const EVERY_MS = 15_000;

export const useMetrics = (workspace: string, kind: string, name: string, hours: number) =>
  useAnswer<Metrics>({
    key: ["metrics", workspace, kind, name, hours],
    everyMs: EVERY_MS,
    ask: (signal) => {
      const start = new Date(Date.now() - hours * 3_600_000).toISOString();
      return call({ path: "/observability/metrics", query: { kind, name, start }, workspace, signal });
    },
  });
