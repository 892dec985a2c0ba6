/** The last revisions of a resource: which one answers, which is tried beside it, and with how many of the requests. */
import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { useRefusal } from "../../api/overview.ts";
import { queries, useAction, useAnswer } from "../../api/query.ts";
import { type Found, updateResource } from "../../api/resources.ts";
import { ageOf } from "../../lib/format.ts";
import { isObject, type Json, memberAt, textAt } from "../../lib/members.ts";
import { type Collection, itemPath } from "../../lib/places.ts";
import { toneOf } from "../../lib/tones.ts";
import { Table } from "../../table/table.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/facts.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";
import { RevisionDifference } from "./revision-difference.tsx";

export interface RevisionsProps {
  workspace: string;
  collection: Collection;
  name: string;
  found: Found;
}

/** How requests are shared between revisions; members of `spec.revision`. */
interface Choice {
  active?: string;
  canary?: string;
  canaryPercent?: number;
}

export function Revisions({ workspace, collection, name, found }: RevisionsProps) {
  const path = itemPath(collection, name);
  const [compared, setCompared] = useState<string | null>(null);
  const key = ["revisions", workspace, path];
  const { data, error } = useAnswer({
    key: [...key, found.etag],
    ask: (signal) => call<unknown[]>({ path: `${path}/revisions`, workspace, signal }),
  });
  const refusal = useRefusal(workspace, `${collection.kind.name}Update`);
  const choose = useAction(async (choice: Choice) => {
    await updateResource(workspace, collection, name, withChoice(found.resource, choice), found.etag);
    say("The requests are shared anew.");
    await queries.invalidateQueries({ queryKey: key });
  });
  if (error) return <Failure error={error} />;
  if (data === undefined) return <Loading />;
  if (data.length === 0) return <Blank title="No revisions yet" />;
  const active = data.find((row) => memberAt(row, "active") === true);
  const canary = data.find((row) => memberAt(row, "canary") === true);
  const activeId = textAt(active, "id");
  const other = data.find((row) => textAt(row, "id") === compared);
  return (
    <div class="stack">
      {choose.error ? <Failure error={choose.error} /> : null}
      {canary === undefined || canary === active ? null : (
        <Canary
          key={`${textAt(canary, "id")} ${textAt(canary, "trafficPercent")}`}
          active={activeId}
          canary={textAt(canary, "id")}
          percent={Number(textAt(canary, "trafficPercent") || "0")}
          busy={choose.busy}
          refusal={refusal}
          onChoose={(choice) => void choose.run(choice)}
        />
      )}
      <Table
        label="Revisions"
        rows={data}
        keyOf={(row) => textAt(row, "id")}
        columns={[
          { title: "Revision", look: "name", cell: (row) => <span class="mono">{textAt(row, "id")}</span> },
          { title: "Use", cell: useOf },
          {
            title: "Status",
            look: "wide",
            cell: (row) => <Badge tone={toneOf(textAt(row, "status"))}>{textAt(row, "status") || "kept"}</Badge>,
          },
          { title: "By", look: "wide", cell: (row) => textAt(row, "createdBy") },
          { title: "Age", look: "age", cell: (row) => ageOf(textAt(row, "createdAt")) },
          {
            title: "Actions",
            cell: (row) =>
              row === active ? null : (
                <span class="row">
                  <Button kind="bare" onClick={() => setCompared(textAt(row, "id"))}>
                    Compare
                  </Button>
                  <Button kind="bare" unable={refusal} onClick={() => void choose.run({ active: textAt(row, "id") })}>
                    Make active
                  </Button>
                  {row === canary ? null : (
                    <Button
                      kind="bare"
                      unable={refusal}
                      onClick={() =>
                        void choose.run({ active: activeId, canary: textAt(row, "id"), canaryPercent: FIRST_PERCENT })
                      }
                    >
                      Try beside it
                    </Button>
                  )}
                </span>
              ),
          },
        ]}
      />
      {other === undefined ? null : (
        <RevisionDifference active={active} other={other} onClose={() => setCompared(null)} />
      )}
    </div>
  );
}

/** What a canary begins with. */
const FIRST_PERCENT = 10;

interface CanaryProps {
  active: string;
  canary: string;
  percent: number;
  busy: boolean;
  refusal: string | null;
  onChoose(choice: Choice): void;
}

function Canary({ active, canary, percent, busy, refusal, onChoose }: CanaryProps) {
  const [wanted, setWanted] = useState(percent);
  return (
    <Card title="Canary">
      <div class="canary">
        <span>
          <span class="mono">{active}</span> <span class="quiet">{100 - wanted} %</span>
        </span>
        <input
          type="range"
          min={0}
          max={100}
          step={1}
          value={wanted}
          aria-label={`Requests that revision ${canary} takes, in percent`}
          onInput={(event) => setWanted(Number(event.currentTarget.value))}
        />
        <span>
          <span class="mono">{canary}</span> <span class="quiet">{wanted} %</span>
        </span>
        <Button
          kind="main"
          busy={busy}
          unable={refusal ?? (wanted === percent ? "Nothing has changed" : null)}
          onClick={() => onChoose({ active, canary, canaryPercent: wanted })}
        >
          Share
        </Button>
        <Button unable={refusal} onClick={() => onChoose({ active })}>
          End the trial
        </Button>
      </div>
    </Card>
  );
}

/** The resource with another sharing of its requests; other members of `spec.revision` stay. */
function withChoice(resource: unknown, choice: Choice): Json {
  const { metadata, spec } = isObject(resource) ? resource : {};
  const before = memberAt(spec, "revision");
  const { active: _active, canary: _canary, canaryPercent: _percent, ...rest } = isObject(before) ? before : {};
  return { metadata, spec: { ...(isObject(spec) ? spec : {}), revision: { ...rest, ...choice } } };
}

function useOf(row: unknown): string {
  if (memberAt(row, "active") === true) return "answers";
  if (memberAt(row, "canary") === true) return `canary, ${textAt(row, "trafficPercent") || "0"} %`;
  return memberAt(row, "previousActive") === true ? "answered before" : "";
}
