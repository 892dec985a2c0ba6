import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { useRefusal } from "../../api/overview.ts";
import { useAction } from "../../api/query.ts";
import { useList } from "../../api/rows.ts";
import { ageOf, countOf, timeOf } from "../../lib/format.ts";
import { textAt } from "../../lib/members.ts";
import { toneOf } from "../../lib/tones.ts";
import { Table } from "../../table/table.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";

/** Who did what, newest first. */
export function Audit({ workspace }: { workspace: string }) {
  const { data, error } = useList<unknown>(workspace, "/audit");
  if (error) return <Failure error={error} />;
  if (data === undefined) return <Loading />;
  if (data.length === 0) return <Blank title="Nothing was done yet" line="berth audit list" />;
  return (
    <>
      <Verify workspace={workspace} />
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
    </>
  );
}

const timeIn = (row: unknown): string => textAt(row, "time") || textAt(row, "createdAt");

interface Verdict {
  intact: boolean;
  lines: number;
  brokenAt: number | null;
  lastHash: string;
}

/** Whether a line of the log was changed afterwards: each line holds a hash of those before it. */
function Verify({ workspace }: { workspace: string }) {
  const [verdict, setVerdict] = useState<Verdict | null>(null);
  const refusal = useRefusal(workspace, "auditVerify");
  const { run, busy, error } = useAction(async () => setVerdict(await call({ path: "/audit/verify", workspace })));
  return (
    <div class="row">
      <Button busy={busy} unable={refusal} onClick={() => void run(null)}>
        <Icon name="check" />
        Verify
      </Button>
      {verdict === null ? (
        <span class="quiet">Checks that no line was changed or removed</span>
      ) : verdict.intact ? (
        <span>
          <Badge tone="good">intact</Badge> {countOf(verdict.lines, "line")}, the last hash{" "}
          <code>{verdict.lastHash.slice(0, 16)}</code>
        </span>
      ) : (
        <span>
          <Badge tone="bad">broken</Badge> from line {verdict.brokenAt} on
        </span>
      )}
      {error ? <Failure error={error} /> : null}
    </div>
  );
}
