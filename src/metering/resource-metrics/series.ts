/** Minutes of all nodes as points of a chart. */
import { HOUR_MS, MINUTE_MS, toIso } from "../../lib/time/clock.ts";
import { addMinute, emptyMinute, type Minute, percentileOf } from "./minute.ts";
import type { StoredHour } from "./stored-hours.ts";

export interface MetricPoint {
  time: string;
  /** Null where nothing was measured in this step. */
  cpus: number | null;
  memoryBytes: number | null;
  diskBytes: number | null;
  requests: number;
  errors: number;
  p95Ms: number | null;
  coldStarts: number;
}

export interface SeriesRange {
  fromMs: number;
  toMs: number;
  stepMs: number;
}

/** One point for each step from `fromMs` on, which is a multiple of the step. */
export function seriesOf(hours: readonly StoredHour[], { fromMs, toMs, stepMs }: SeriesRange): MetricPoint[] {
  /** Step → node → what the node observed in it. */
  const steps = new Map<number, Map<string, Minute>>();
  for (const { hour, node, minutes } of hours)
    for (const [minute, observed] of Object.entries(minutes)) {
      const atMs = hour * HOUR_MS + Number(minute) * MINUTE_MS;
      if (atMs < fromMs || atMs >= toMs) continue;
      const step = Math.floor((atMs - fromMs) / stepMs);
      const nodes = steps.get(step) ?? new Map<string, Minute>();
      const sum = nodes.get(node) ?? emptyMinute();
      addMinute(sum, observed);
      steps.set(step, nodes.set(node, sum));
    }
  const count = Math.ceil((toMs - fromMs) / stepMs);
  return Array.from({ length: count }, (_, step) =>
    pointOf(fromMs + step * stepMs, [...(steps.get(step)?.values() ?? [])]),
  );
}

/** Nodes run different instances at the same time: their use adds up. */
function pointOf(atMs: number, nodes: readonly Minute[]): MetricPoint {
  const all = emptyMinute();
  for (const node of nodes) addMinute(all, node);
  const sum = (value: (node: Minute) => number): number => nodes.reduce((total, node) => total + value(node), 0);
  const { requests, errors, coldStarts, durations } = all;
  const p95 = percentileOf(durations, 0.95);
  return {
    time: toIso(atMs),
    cpus:
      all.measuredMs === 0 ? null : precise(sum((node) => (node.measuredMs === 0 ? 0 : node.cpuMs / node.measuredMs))),
    memoryBytes: all.memoryBytes === 0 ? null : sum((node) => node.memoryBytes),
    diskBytes: all.diskBytes === undefined ? null : sum((node) => node.diskBytes ?? 0),
    ...{ requests, errors, coldStarts },
    p95Ms: p95 === null ? null : precise(p95),
  };
}

const precise = (value: number): number => Number(value.toPrecision(3));
