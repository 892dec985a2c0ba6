/**
 * How long management requests take, by operation and status. A histogram like the library's, but counted in plain
 * numbers: the library looks its labels up and checks them again with every single observation.
 */
import type { Metric, Registry } from "prom-client";

const NAME = "berth_api_request_seconds";
const BUCKETS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30];

export interface RequestTimes {
  observe(operation: string, status: number, seconds: number): void;
}

interface Row {
  labels: { operation: string; status: number };
  /** As many as there are buckets, each without those below it, and one for what is beyond them all. */
  counts: number[];
  sum: number;
}

export function createRequestTimes(registry: Registry): RequestTimes {
  const rows = new Map<string, Map<number, Row>>();
  const metric = {
    name: NAME,
    get: async () => ({
      name: NAME,
      help: "Time to answer a management request.",
      type: "histogram",
      aggregator: "sum",
      values: [...rows.values()].flatMap((byStatus) => [...byStatus.values()]).flatMap(samplesOf),
    }),
  };
  registry.registerMetric(metric as unknown as Metric);
  return {
    observe(operation, status, seconds) {
      const row = rows.get(operation)?.get(status) ?? newRow(rows, operation, status);
      let at = 0;
      while (at < BUCKETS.length && seconds > (BUCKETS[at] as number)) at += 1;
      (row.counts[at] as number) += 1;
      row.sum += seconds;
    },
  };
}

function newRow(rows: Map<string, Map<number, Row>>, operation: string, status: number): Row {
  const row: Row = { labels: { operation, status }, counts: new Array(BUCKETS.length + 1).fill(0), sum: 0 };
  const byStatus = rows.get(operation) ?? new Map<number, Row>();
  rows.set(operation, byStatus.set(status, row));
  return row;
}

/** A bucket tells of all that fit into it, those of the smaller ones too. */
function samplesOf({ labels, counts, sum }: Row) {
  let count = 0;
  const buckets = counts.map((n, at) => {
    count += n;
    return { metricName: `${NAME}_bucket`, labels: { le: BUCKETS[at] ?? "+Inf", ...labels }, value: count };
  });
  return [
    ...buckets,
    { metricName: `${NAME}_sum`, labels, value: sum },
    { metricName: `${NAME}_count`, labels, value: count },
  ];
}
