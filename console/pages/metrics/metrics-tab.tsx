/** Charts of one resource: what it uses and what it is asked for. */
import "./metrics.css";
import { type MetricPoint, useMetrics } from "../../api/metrics.ts";
import type { Workload } from "../../api/workload.ts";
import { bytesOf, spanText } from "../../lib/format.ts";
import { queryOf, setQuery } from "../../lib/location.ts";
import { Choice } from "../../ui/field.tsx";
import { LineChart } from "../../ui/line-chart.tsx";
import { Failure, Loading } from "../../ui/notice.tsx";
import { CopyAs } from "../copy-as.tsx";

interface ChartFacts {
  title: string;
  value(point: MetricPoint): number | null;
  shown(value: number): string;
  headline: "last" | "sum";
  unit?: number;
  /** Resources without instances of their own, such as models, have no such chart. */
  needsInstances?: true;
}

const whole = (value: number): string => Math.round(value).toLocaleString("en");

const CHARTS: readonly ChartFacts[] = [
  {
    ...{ title: "Processors", value: ({ cpus }) => cpus, shown: (value) => String(Number(value.toPrecision(3))) },
    ...{ headline: "last", needsInstances: true },
  },
  {
    ...{ title: "Memory", value: ({ memoryBytes }) => memoryBytes, shown: bytesOf, unit: 2 ** 20 },
    ...{ headline: "last", needsInstances: true },
  },
  {
    ...{ title: "Disk", value: ({ diskBytes }) => diskBytes, shown: bytesOf, unit: 2 ** 20 },
    ...{ headline: "last", needsInstances: true },
  },
  { title: "Requests", value: ({ requests }) => requests, shown: whole, headline: "sum" },
  { title: "Errors", value: ({ errors }) => errors, shown: whole, headline: "sum" },
  { title: "Latency, p95", value: ({ p95Ms }) => p95Ms, shown: spanText, headline: "last" },
  {
    ...{ title: "Cold starts", value: ({ coldStarts }) => coldStarts, shown: whole },
    ...{ headline: "sum", needsInstances: true },
  },
];

const SPANS: Readonly<Record<string, number>> = { "1 hour": 1, "6 hours": 6, "24 hours": 24 };

export function MetricsTab({ workload: { workspace, plural, name } }: { workload: Workload }) {
  const span = queryOf("span") in SPANS ? queryOf("span") : "1 hour";
  const { data, error } = useMetrics(workspace, plural, name, SPANS[span] ?? 1);
  const times = data?.points.map(({ time }) => time) ?? [];
  return (
    <div class="stack">
      <div class="metrics-head">
        <Choice label="Over" value={span} choices={Object.keys(SPANS)} onInput={(next) => setQuery({ span: next })} />
        <span class="grow" />
        <CopyAs
          asked={{
            ...{ method: "GET", path: "/observability/metrics", query: { kind: plural, name }, workspace, params: {} },
            operation: "metricQuery",
            command: `berth metric query --kind ${plural} --name ${name} -w ${workspace}`,
          }}
        />
      </div>
      {error ? <Failure error={error} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      {data === undefined ? null : (
        <div class="metrics">
          {CHARTS.filter(({ needsInstances }) => !needsInstances || plural !== "models").map(({ value, ...facts }) => (
            <LineChart key={facts.title} {...facts} times={times} values={data.points.map(value)} />
          ))}
        </div>
      )}
    </div>
  );
}
