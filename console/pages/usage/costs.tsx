/** Costs over time and by any dimension. A row or a bar leads to the events that it is made of. */

import { useAction } from "../../api/query.ts";
import { DAY_MS, exportRows, type UsageEntry, useUsage } from "../../api/usage.ts";
import { csvOf } from "../../lib/csv.ts";
import { moneyOf } from "../../lib/format.ts";
import { here, queryOf, setQuery } from "../../lib/location.ts";
import { textAt } from "../../lib/members.ts";
import { saveText } from "../../lib/save-text.ts";
import { labelOf } from "../../lib/titles.ts";
import { Table } from "../../table/table.tsx";
import { Button } from "../../ui/button.tsx";
import { Chart } from "../../ui/chart.tsx";
import { Card } from "../../ui/facts.tsx";
import { Choice } from "../../ui/field.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import { SPANS } from "./spans.ts";
import "../list/list.css";
import "./usage.css";

const GROUPS: Readonly<Record<string, readonly string[]>> = {
  billing_dimension: ["billingDimension"],
  resource_type: ["resourceType"],
  resource_name: ["resourceType", "resourceName"],
  workspace: ["workspace"],
};
/** Members that hold a name that people chose. */
const NAMES: readonly string[] = ["resourceName", "workspace"];
const DRAWN_MAX = 8;
const COLUMNS = ["timestamp", "workspace", "resourceType", "resourceName", "billingDimension", "usage", "cost"];

export function Costs({ workspace, account }: { workspace: string; account: string }) {
  const groupBy = queryOf("by") || "billing_dimension";
  const span = queryOf("span") || "7 days";
  const days = SPANS[span] ?? 7;
  const { data, error } = useUsage({ workspace, account, groupBy, days });
  const save = useAction(async () =>
    saveText("usage.csv", csvOf(COLUMNS, await exportRows({ workspace, account, days }))),
  );
  const titleOf = (entry: UsageEntry): string =>
    (GROUPS[groupBy] ?? [])
      .map((member) => (NAMES.includes(member) ? textAt(entry, member) : labelOf(textAt(entry, member))))
      .filter(Boolean)
      .join(" · ") || "All";
  const isDrawn = data !== undefined && data.data.length > 0;
  const failure = error ?? save.error;
  const times = data?.data[0]?.timeseries.map(({ timestamp }) => timestamp) ?? [];
  return (
    <>
      <div class="filters usage-head">
        <Choice
          label="By"
          value={groupBy}
          choices={Object.keys(GROUPS)}
          shown={labelOf}
          onInput={(by) => setQuery({ by })}
        />
        <Choice label="Over" value={span} choices={Object.keys(SPANS)} onInput={(next) => setQuery({ span: next })} />
        <Button busy={save.busy} unable={isDrawn ? null : "Nothing was used"} onClick={() => void save.run(null)}>
          Download CSV
        </Button>
        <span class="grow" />
        {data === undefined ? null : <strong class="usage-total">{moneyOf(data.summary.totalCost)}</strong>}
      </div>
      {failure ? <Failure error={failure} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      {data?.data.length === 0 ? <Blank title="Nothing was used" text="Usage shows up within seconds." /> : null}
      {isDrawn ? (
        <Card title="Cost">
          <Chart
            label={`Cost over ${span}: ${moneyOf(data.summary.totalCost)}`}
            times={times.map((time) => Date.parse(time) / 1000)}
            series={data.data.slice(0, DRAWN_MAX).map((entry) => ({
              title: titleOf(entry),
              values: entry.timeseries.map(({ cost }) => cost),
            }))}
            shown={moneyOf}
            onChoose={(at) => setQuery({ tab: "events", from: times[at] ?? "", to: endOf(times, at) })}
          />
        </Card>
      ) : null}
      {isDrawn ? (
        <Table
          label="Usage"
          rows={data.data}
          keyOf={titleOf}
          columns={[
            {
              title: "What",
              look: "name",
              cell: (entry) => <a href={eventsOf(entry, span)}>{titleOf(entry)}</a>,
            },
            { title: "Usage", look: "wide", cell: ({ summary }) => summary.usage?.toLocaleString("en") ?? "" },
            { title: "Cost", cell: ({ summary }) => moneyOf(summary.cost) },
          ]}
        />
      ) : null}
    </>
  );
}

/** The end of a bar: the begin of the next one, or as long after as the bar before was long. */
function endOf(times: readonly string[], at: number): string {
  const next = times[at + 1];
  if (next !== undefined) return next;
  const [begin, before] = [Date.parse(times[at] ?? ""), Date.parse(times[at - 1] ?? "")];
  return new Date(begin + (Number.isNaN(before) ? DAY_MS : begin - before)).toISOString();
}

/** The address of the events behind an entry. */
function eventsOf(entry: UsageEntry, span: string): string {
  const { resourceType = "", resourceName = "", billingDimension = "" } = entry;
  const named = { type: resourceType, name: resourceName, dimension: billingDimension };
  const query = { tab: "events", span, ...named };
  return `${here.value.pathname}?${new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""))}`;
}
