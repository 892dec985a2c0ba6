/** The ledger of a model: every request with who asked, its tokens and its cost. */
import { type ModelRequest, useModelRequests } from "../../api/model-requests.ts";
import type { Workload } from "../../api/workload.ts";
import { ageOf, moneyOf, timeOf } from "../../lib/format.ts";
import { queryOf, setQuery } from "../../lib/location.ts";
import { Table } from "../../table/table.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import { CopyAs } from "../copy-as.tsx";
import { Budgets } from "./budgets.tsx";

export function RequestsTab({ workload: { workspace, name } }: { workload: Workload }) {
  const cursor = queryOf("page");
  const { data, error } = useModelRequests(workspace, name, cursor);
  return (
    <div class="stack">
      <Budgets workspace={workspace} model={name} />
      <div class="row">
        <span class="quiet grow">The last day, the newest first</span>
        <CopyAs
          asked={{
            ...{ method: "GET", path: `/models/${encodeURIComponent(name)}/requests`, workspace },
            ...{ operation: "modelRequests", params: { modelName: name } },
            command: `berth model requests ${name} -w ${workspace}`,
          }}
        />
      </div>
      {error ? <Failure error={error} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      {data?.data.length === 0 ? <Blank title="Nobody has asked it in the last day" /> : null}
      {data?.data.length ? (
        <Table
          label="Requests"
          rows={data.data}
          keyOf={({ id }) => id}
          columns={[
            { title: "Request", look: "name mono", cell: ({ id }) => <span title={id}>{id}</span> },
            { title: "By", look: "wide", cell: whoOf },
            { title: "In", cell: ({ inputTokens }) => inputTokens.toLocaleString("en") },
            { title: "Out", cell: ({ outputTokens }) => outputTokens.toLocaleString("en") },
            { title: "Cost", look: "wide", cell: costOf },
            { title: "Notes", look: "wide", cell: notesOf },
            { title: "When", look: "age", cell: ({ time }) => <span title={timeOf(time)}>{ageOf(time)}</span> },
          ]}
        />
      ) : null}
      <div class="row">
        {cursor === "" ? null : <Button onClick={() => setQuery({ page: "" })}>The newest</Button>}
        {data?.meta.hasMore ? (
          <Button onClick={() => setQuery({ page: data.meta.nextCursor })}>Older ones</Button>
        ) : null}
      </div>
    </div>
  );
}

const whoOf = ({ key }: ModelRequest): string => (key === null ? "" : (key.name ?? `${key.type} ${key.id}`));

const costOf = ({ cost, priced }: ModelRequest): string => (priced ? moneyOf(cost) : "no price");

const notesOf = ({ cached, estimated, cachedInputTokens }: ModelRequest) => (
  <span class="row">
    {cached ? <Badge tone="good">from the cache</Badge> : null}
    {estimated ? <Badge tone="busy">estimated</Badge> : null}
    {cachedInputTokens > 0 ? <span class="quiet">{cachedInputTokens.toLocaleString("en")} cached</span> : null}
  </span>
);
