/** Tools that a pinned MCP server may not offer until an admin has read and approved their definitions. */
import { useEffect, useState } from "preact/hooks";
import { useRefusal } from "../../api/overview.ts";
import { useAction } from "../../api/query.ts";
import { approveTools, type PinnedTools, usePinnedTools, type WithheldTool } from "../../api/withheld-tools.ts";
import type { Workload } from "../../api/workload.ts";
import { ageOf, countOf } from "../../lib/format.ts";
import { inView } from "../../lib/in-view.ts";
import { visible } from "../../lib/visible.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Card } from "../../ui/facts.tsx";
import { Failure } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";

export function Withheld({ workload }: { workload: Workload }) {
  const { data, error } = usePinnedTools(workload);
  const refusal = useRefusal(workload.workspace, "functionApproveTools");
  const [read, look] = useState<readonly WithheldTool[]>([]);
  const now = data?.withheld ?? [];
  const { shown, hasOthers } = inView(read, now);
  const isRead = shown.every(({ item }) => read.includes(item));
  useEffect(() => {
    if (!isRead) look(shown.map(({ item }) => item));
  });
  const approve = useAction(async (tools: readonly WithheldTool[]) => {
    await approveTools(workload, tools);
    say(tools.length === 1 ? `${tools[0]?.name} is approved.` : `${countOf(tools.length, "tool")} are approved.`);
  });
  if (error) return <Failure error={error} />;
  if (data === undefined || data.pins === null) return null;
  if (shown.length === 0) return <p class="quiet">{pinsText(data)}</p>;
  return (
    <Card title={`Withheld: ${countOf(now.length, "tool")}`}>
      <div class="stack">
        <p class="quiet">
          {pinsText(data)} Clients neither see nor call these until an admin approves what the server says about them.
        </p>
        <ul class="withheld" aria-label="Withheld tools">
          {shown.map(({ item: tool, isReplaced }) => (
            <li key={tool.name}>
              <div class="row">
                <strong class="mono">{visible(tool.name)}</strong>
                <Badge tone={tool.why === "changed" ? "bad" : "busy"}>{tool.why}</Badge>
                <span class="quiet grow">{ageOf(tool.since)} ago</span>
                <Button
                  busy={approve.busy}
                  unable={isReplaced ? REPLACED : refusal}
                  label={`Approve ${visible(tool.name)}`}
                  onClick={() => void approve.run([tool])}
                >
                  Approve
                </Button>
              </div>
              <Definition text={tool.definition} />
            </li>
          ))}
        </ul>
        {hasOthers ? (
          <div class="row">
            <span class="quiet grow">The server lists other definitions since you opened this.</span>
            <Button onClick={() => look(now)}>Show them</Button>
          </div>
        ) : null}
        {shown.length < 2 ? null : (
          <div class="row">
            <Button
              kind="main"
              busy={approve.busy}
              unable={shown.some(({ isReplaced }) => isReplaced) ? REPLACED : refusal}
              onClick={() => void approve.run(shown.map(({ item }) => item))}
            >
              Approve all {shown.length}
            </Button>
          </div>
        )}
        {approve.error ? <Failure error={approve.error} /> : null}
      </div>
    </Card>
  );
}

const REPLACED = "The server lists another definition by now: look at that one.";

const pinsText = ({ approved, pinnedRevision }: PinnedTools): string =>
  `Definitions are pinned: ${countOf(approved.length, "tool")} approved${pinnedRevision === null ? "" : `, with revision ${pinnedRevision}`}.`;

/** A definition that was cut off is no JSON. */
function Definition({ text }: { text: string }) {
  const whole = parsed(text);
  return (
    <>
      <Code text={visible(whole === undefined ? text : JSON.stringify(whole, null, 2))} noun="The definition" />
      {whole === undefined ? (
        <p class="quiet">
          This is its beginning only. Whoever approves it approves the rest too: read it at the server.
        </p>
      ) : null}
    </>
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
