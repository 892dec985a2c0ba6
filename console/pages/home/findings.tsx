import { type Finding, useFindings } from "../../api/findings.ts";
import { remembered } from "../../lib/storage.ts";
import { labelOf, sentenceOf } from "../../lib/titles.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";

/** Warnings that the person has put away, each as its text: the same check with other words is shown again. */
const hidden = remembered("hidden-findings", "[]");
/** The oldest are shown again, so that the list in the browser stays short. */
const HIDDEN_MAX = 50;

const textOf = ({ node, check, says }: Finding): string => [node, check, says].join(" ");

/** What the servers lack, with the command that mends it. Nothing when all is well. */
export function Findings({ workspace }: { workspace: string }) {
  const { data = [] } = useFindings(workspace);
  const put = JSON.parse(hidden.value) as string[];
  const shown = data.filter((finding) => finding.state === "problem" || !put.includes(textOf(finding)));
  if (shown.length === 0) return null;
  return (
    <section class="findings" aria-label="Findings about this server">
      {shown.map((finding) => (
        <FindingCard
          key={textOf(finding)}
          finding={finding}
          onHide={() => {
            hidden.value = JSON.stringify([...put, textOf(finding)].slice(-HIDDEN_MAX));
          }}
        />
      ))}
    </section>
  );
}

function FindingCard({ finding, onHide }: { finding: Finding; onHide(): void }) {
  const { check, state, says, next = "", command, node } = finding;
  return (
    <article class="card finding">
      <div class="row">
        <Badge tone={state === "problem" ? "bad" : "busy"}>{state}</Badge>
        <h2 class="grow">{node === "" ? labelOf(check) : `${labelOf(check)} of ${node}`}</h2>
        {state === "problem" ? null : (
          <Button kind="bare" label={`Hide the warning about ${check}`} onClick={onHide}>
            Hide
          </Button>
        )}
      </div>
      <p>{sentenceOf(says)}</p>
      {next === "" || next === command ? null : <p class="quiet">{sentenceOf(next)}</p>}
      {command === undefined ? null : <Code text={command} noun="The command" />}
    </article>
  );
}
