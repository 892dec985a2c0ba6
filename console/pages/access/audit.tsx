import { useList } from "../../api/rows.ts";
import { ageOf, timeOf } from "../../lib/format.ts";
import { textAt } from "../../lib/members.ts";
import { toneOf } from "../../lib/tones.ts";
import { Table } from "../../table/table.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";

/** Who did what, newest first. */
export function Audit({ workspace }: { workspace: string }) {
  const { data, error } = useList<unknown>(workspace, "/audit");
  if (error) return <Failure error={error} />;
  if (data === undefined) return <Loading />;
  if (data.length === 0) return <Blank title="Nothing was done yet" line="berth audit list" />;
  return (
    <Table
      label="Audit"
      rows={data}
      keyOf={(row) => textAt(row, "id")}
      columns={[
        { title: "Who", look: "name", cell: (row) => textAt(row, "actor.name") || textAt(row, "actor.id") },
        { title: "What", cell: (row) => textAt(row, "action") },
        { title: "Target", look: "wide", cell: (row) => textAt(row, "target") },
        {
          title: "Outcome",
          look: "wide",
          cell: (row) => {
            const outcome = textAt(row, "outcome");
            return <Badge tone={outcome === "ok" ? "good" : toneOf("FAILED")}>{outcome}</Badge>;
          },
        },
        { title: "When", look: "age", cell: (row) => <span title={timeOf(timeIn(row))}>{ageOf(timeIn(row))}</span> },
      ]}
    />
  );
}

const timeIn = (row: unknown): string => textAt(row, "time") || textAt(row, "createdAt");
