/** The last revisions of a resource: which one answers, and which is tried beside it. */
import { call } from "../../api/call.ts";
import { useAnswer } from "../../api/query.ts";
import { ageOf } from "../../lib/format.ts";
import { memberAt, textAt } from "../../lib/members.ts";
import { toneOf } from "../../lib/tones.ts";
import { Table } from "../../table/table.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";

export function Revisions({ path, workspace }: { path: string; workspace: string }) {
  const { data, error } = useAnswer({
    key: ["revisions", workspace, path],
    ask: (signal) => call<unknown[]>({ path: `${path}/revisions`, workspace, signal }),
  });
  if (error) return <Failure error={error} />;
  if (data === undefined) return <Loading />;
  if (data.length === 0) return <Blank title="No revisions yet" />;
  return (
    <Table
      label="Revisions"
      rows={data}
      keyOf={(row) => textAt(row, "id")}
      columns={[
        { title: "Revision", look: "name", cell: (row) => <span class="mono">{textAt(row, "id")}</span> },
        { title: "Use", cell: useOf },
        {
          title: "Status",
          cell: (row) => <Badge tone={toneOf(textAt(row, "status"))}>{textAt(row, "status") || "kept"}</Badge>,
        },
        { title: "By", look: "wide", cell: (row) => textAt(row, "createdBy") },
        { title: "Age", look: "age", cell: (row) => ageOf(textAt(row, "createdAt")) },
      ]}
    />
  );
}

function useOf(row: unknown): string {
  if (memberAt(row, "active") === true) return "answers";
  if (memberAt(row, "canary") === true) return `canary, ${textAt(row, "trafficPercent") || "0"} %`;
  return memberAt(row, "previousActive") === true ? "answered before" : "";
}
