/** What was used and what it costs, over time and by any dimension. */
import { call } from "../../api/call.ts";
import { useAnswer } from "../../api/query.ts";
import { useWorkspaces } from "../../api/workspaces.ts";
import { moneyOf } from "../../lib/format.ts";
import { queryOf, setQuery } from "../../lib/location.ts";
import { textAt } from "../../lib/members.ts";
import { labelOf } from "../../lib/titles.ts";
import { Table } from "../../table/table.tsx";
import { Chart } from "../../ui/chart.tsx";
import { Card } from "../../ui/facts.tsx";
import { Choice } from "../../ui/field.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import "../list/list.css";

interface Entry {
  summary: { cost: number; usage?: number };
  timeseries: readonly { timestamp: string; cost: number }[];
}

interface Metrics {
  summary: { totalCost: number };
  data: readonly Entry[];
}

const GROUPS: Readonly<Record<string, readonly string[]>> = {
  billing_dimension: ["billingDimension"],
  resource_type: ["resourceType"],
  resource_name: ["resourceType", "resourceName"],
  workspace: ["workspace"],
};
/** Members that hold a name that people chose. */
const NAMES: readonly string[] = ["resourceName", "workspace"];
const WINDOWS: Readonly<Record<string, number>> = { "1 day": 1, "7 days": 7, "30 days": 30, "90 days": 90 };
const DAY_MS = 86_400_000;
const DRAWN_MAX = 8;
const EVERY_MS = 30_000;

export function UsagePage({ workspace }: { workspace: string }) {
  const { data: workspaces } = useWorkspaces();
  const account = workspaces?.find(({ name }) => name === workspace)?.accountId ?? "";
  const groupBy = queryOf("by") || "billing_dimension";
  const span = queryOf("span") || "7 days";
  const { data, error } = useAnswer({
    key: ["usage", account, groupBy, span],
    everyMs: EVERY_MS,
    enabled: account !== "",
    ask: (signal) => {
      const end = Math.ceil(Date.now() / DAY_MS) * DAY_MS;
      const query = { ...windowOf(end - (WINDOWS[span] ?? 7) * DAY_MS, end), groupBy };
      return call<Metrics>({ path: `/accounts/${account}/metrics`, query, workspace, signal });
    },
  });
  const titleOf = (entry: Entry): string =>
    (GROUPS[groupBy] ?? [])
      .map((member) => (NAMES.includes(member) ? textAt(entry, member) : labelOf(textAt(entry, member))))
      .filter(Boolean)
      .join(" · ") || "All";
  const isDrawn = data !== undefined && data.data.length > 0;
  return (
    <>
      <div class="page-head">
        <h1 class="grow">Usage</h1>
        {data === undefined ? null : <strong>{moneyOf(data.summary.totalCost)}</strong>}
      </div>
      <div class="filters">
        <Choice
          label="By"
          value={groupBy}
          choices={Object.keys(GROUPS)}
          shown={labelOf}
          onInput={(by) => setQuery({ by })}
        />
        <Choice label="Over" value={span} choices={Object.keys(WINDOWS)} onInput={(next) => setQuery({ span: next })} />
      </div>
      {error ? <Failure error={error} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      {data?.data.length === 0 ? <Blank title="Nothing was used" text="Usage shows up within seconds." /> : null}
      {isDrawn ? (
        <Card title="Cost">
          <Chart
            label={`Cost over ${span}: ${moneyOf(data.summary.totalCost)}`}
            times={data.data[0]?.timeseries.map(({ timestamp }) => Date.parse(timestamp) / 1000) ?? []}
            series={data.data.slice(0, DRAWN_MAX).map((entry) => ({
              title: titleOf(entry),
              values: entry.timeseries.map(({ cost }) => cost),
            }))}
            shown={moneyOf}
          />
        </Card>
      ) : null}
      {isDrawn ? (
        <Table
          label="Usage"
          rows={data.data}
          keyOf={titleOf}
          columns={[
            { title: "What", look: "name", cell: titleOf },
            { title: "Usage", look: "wide", cell: ({ summary }) => summary.usage?.toLocaleString("en") ?? "" },
            { title: "Cost", cell: ({ summary }) => moneyOf(summary.cost) },
          ]}
        />
      ) : null}
    </>
  );
}

const windowOf = (start: number, end: number) => ({
  startTime: new Date(start).toISOString(),
  endTime: new Date(end).toISOString(),
});
