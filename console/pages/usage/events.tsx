/** The single events behind a cost, narrowed to a time, a resource or a dimension. */
import { useRefusal } from "../../api/overview.ts";
import { type UsageFilter, useEvents, windowOf } from "../../api/usage.ts";
import { csvOf } from "../../lib/csv.ts";
import { countOf, timeOf } from "../../lib/format.ts";
import { queryOf, setQuery } from "../../lib/location.ts";
import { saveText } from "../../lib/save-text.ts";
import { labelOf } from "../../lib/titles.ts";
import { Table } from "../../table/table.tsx";
import { Button } from "../../ui/button.tsx";
import { Choice } from "../../ui/field.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import { SPANS } from "./spans.ts";
import "../list/list.css";
import "./usage.css";

const COLUMNS = ["workspace", "resourceType", "resourceName", "billingDimension"];
const EXPORTED = [...COLUMNS, "usedBy", "startTime", "endTime", "usage", "key"];

/** Members of the address and the filters that they are. */
const FILTERS: Readonly<Record<string, keyof UsageFilter>> = {
  type: "resourceType",
  name: "resourceName",
  dimension: "billingDimension",
};

export function Events({ workspace, account }: { workspace: string; account: string }) {
  const span = queryOf("span") || "7 days";
  const [from, to] = [queryOf("from"), queryOf("to")];
  const window = from === "" || to === "" ? windowOf(SPANS[span] ?? 7) : { startTime: from, endTime: to };
  const filter: UsageFilter = {
    resourceType: queryOf("type"),
    resourceName: queryOf("name"),
    billingDimension: queryOf("dimension"),
  };
  const refusal = useRefusal(workspace, "accountUsageEvents");
  const { data, error } = useEvents(workspace, refusal === null ? account : "", window, filter);
  if (refusal !== null) return <Blank title="Only account admins see single events" text={refusal} />;
  const named = Object.entries(FILTERS).filter(([, member]) => filter[member] !== "");
  return (
    <>
      <div class="filters usage-head">
        {from === "" ? (
          <Choice label="Over" value={span} choices={Object.keys(SPANS)} onInput={(next) => setQuery({ span: next })} />
        ) : (
          <Button onClick={() => setQuery({ from: "", to: "" })}>
            {timeOf(from)} to {timeOf(to)} ×
          </Button>
        )}
        {named.map(([word, member]) => (
          <Button key={word} onClick={() => setQuery({ [word]: "" })}>
            {member === "resourceName" ? filter[member] : labelOf(filter[member])} ×
          </Button>
        ))}
        <span class="grow" />
        <Button
          unable={data?.length ? null : "There are no events"}
          onClick={() => saveText("events.csv", csvOf(EXPORTED, data ?? []))}
        >
          Download CSV
        </Button>
      </div>
      {error ? <Failure error={error} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      {data?.length === 0 ? (
        <Blank
          title="No events in this time"
          text="Usage that is running becomes an event at its end, or at the full hour."
          line="berth billing export --since 1h --events"
        />
      ) : null}
      {data?.length ? (
        <>
          <p class="quiet">{countOf(data.length, "event")}, the oldest first; the command line exports all of them.</p>
          <Table
            label="Events"
            rows={data}
            keyOf={({ startTime, resourceName, billingDimension, key }) =>
              [startTime, resourceName, billingDimension, key].join(" ")
            }
            columns={[
              { title: "Resource", look: "name", cell: ({ resourceName }) => resourceName },
              { title: "Dimension", cell: ({ billingDimension }) => labelOf(billingDimension) },
              { title: "Usage", cell: ({ usage }) => usage.toLocaleString("en", { maximumSignificantDigits: 6 }) },
              { title: "From", look: "wide", cell: ({ startTime }) => timeOf(startTime) },
              {
                title: "To",
                look: "wide",
                cell: ({ startTime, endTime }) => (endTime === startTime ? "" : timeOf(endTime)),
              },
              { title: "Used by", look: "wide mono", cell: ({ usedBy }) => usedBy ?? "" },
            ]}
          />
        </>
      ) : null}
    </>
  );
}
