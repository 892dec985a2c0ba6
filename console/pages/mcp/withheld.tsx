/** Tools that a pinned MCP server may not offer until an admin has read and approved their definitions. */
import { useRefusal } from "../../api/overview.ts";
import { useAction } from "../../api/query.ts";
import { approveTools, type PinnedTools, usePinnedTools, type WithheldTool } from "../../api/withheld-tools.ts";
import type { Workload } from "../../api/workload.ts";
import { ageOf, countOf } from "../../lib/format.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Card } from "../../ui/facts.tsx";
import { Failure } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";

export function Withheld({ workload }: { workload: Workload }) {
  const { data, error } = usePinnedTools(workload);
  const refusal = useRefusal(workload.workspace, "functionApproveTools");
  const approve = useAction(async (tools: readonly WithheldTool[]) => {
    await approveTools(workload, tools);
    say(tools.length === 1 ? `${tools[0]?.name} is approved.` : `${countOf(tools.length, "tool")} are approved.`);
  });
  if (error) return <Failure error={error} />;
  if (data === undefined || data.pins === null) return null;
  if (data.withheld.length === 0) return <p class="quiet">{pinsText(data)}</p>;
  return (
    <Card title={`Withheld: ${countOf(data.withheld.length, "tool")}`}>
      <div class="stack">
        <p class="quiet">
          {pinsText(data)} Clients neither see nor call these until an admin approves what the server says about them.
        </p>
        <ul class="withheld" aria-label="Withheld tools">
          {data.withheld.map((tool) => (
            <li key={tool.name}>
              <div class="row">
                <strong class="mono">{tool.name}</strong>
                <Badge tone={tool.why === "changed" ? "bad" : "busy"}>{tool.why}</Badge>
                <span class="quiet grow">{ageOf(tool.since)} ago</span>
                <Button
                  busy={approve.busy}
                  unable={refusal}
                  label={`Approve ${tool.name}`}
                  onClick={() => void approve.run([tool])}
                >
                  Approve
                </Button>
              </div>
              <Code text={pretty(tool.definition)} noun="The definition" />
            </li>
          ))}
        </ul>
        {data.withheld.length < 2 ? null : (
          <div class="row">
            <Button kind="main" busy={approve.busy} unable={refusal} onClick={() => void approve.run(data.withheld)}>
              Approve all {data.withheld.length}
            </Button>
          </div>
        )}
        {approve.error ? <Failure error={approve.error} /> : null}
      </div>
    </Card>
  );
}

const pinsText = ({ approved, pinnedRevision }: PinnedTools): string =>
  `Definitions are pinned: ${countOf(approved.length, "tool")} approved${pinnedRevision === null ? "" : `, with revision ${pinnedRevision}`}.`;

/** A definition that was cut off is no JSON. */
function pretty(definition: string): string {
  try {
    return JSON.stringify(JSON.parse(definition), null, 2);
  } catch {
    return definition;
  }
}
