/** What runs, what failed, and three ways to begin. */
import "./home.css";
import { useRows } from "../../api/pages.ts";
import { useAction } from "../../api/query.ts";
import { createResource } from "../../api/resources.ts";
import { ageOf } from "../../lib/format.ts";
import { go } from "../../lib/location.ts";
import { createdAt, nameOf, textAt } from "../../lib/members.ts";
import { titleOf } from "../../lib/titles.ts";
import { toneOf } from "../../lib/tones.ts";
import { Badge } from "../../ui/badge.tsx";
import { Card } from "../../ui/facts.tsx";
import { Icon, type IconName } from "../../ui/icon.tsx";
import { Failure } from "../../ui/notice.tsx";
import { kindNamed, places, top } from "../../views/places.ts";

const SHOWN = ["sandbox", "agent", "function", "job", "application", "model"];
const ROWS_MAX = 6;

export function HomePage({ workspace }: { workspace: string }) {
  return (
    <>
      <h1>Home</h1>
      <div class="starts">
        {STARTS.map((start) => (
          <StartCard key={start.title} start={start} workspace={workspace} />
        ))}
      </div>
      <div class="home-grid">
        {SHOWN.map((kind) => (
          <Recent key={kind} kind={kind} workspace={workspace} />
        ))}
      </div>
    </>
  );
}

interface StartSpec {
  kind: string;
  icon: IconName;
  title: string;
  text: string;
  body(): object;
}

const word = (): string => Math.random().toString(36).slice(2, 7);

const STARTS: readonly StartSpec[] = [
  {
    ...{ kind: "sandbox", icon: "box", title: "Start a sandbox" },
    text: "A machine of your own, with a terminal and files.",
    body: () => ({ metadata: { name: `box-${word()}` }, spec: {} }),
  },
  {
    ...{ kind: "model", icon: "model", title: "Try a model" },
    text: "A mock that answers at once and costs nothing.",
    body: () => ({ metadata: { name: `mock-${word()}` }, spec: { runtime: { type: "mock", model: "mock" } } }),
  },
  {
    ...{ kind: "job", icon: "job", title: "Make a job" },
    text: "A command that runs once for each task.",
    body: () => ({ metadata: { name: `job-${word()}` }, spec: { runtime: { image: "", args: [] } } }),
  },
];

function StartCard({ start, workspace }: { start: StartSpec; workspace: string }) {
  const { run, busy, error } = useAction(async () => {
    const made = await createResource(workspace, top(start.kind), start.body());
    go(places.item(workspace, top(start.kind), nameOf(made)));
  });
  return (
    <div class="stack">
      <button type="button" class="start" aria-busy={busy} disabled={busy} onClick={() => void run(null)}>
        <Icon name={start.icon} size={20} />
        <span>
          <strong>{start.title}</strong>
          <span class="quiet">{start.text}</span>
        </span>
      </button>
      {error ? <Failure error={error} /> : null}
    </div>
  );
}

function Recent({ kind: name, workspace }: { kind: string; workspace: string }) {
  const kind = kindNamed(name);
  const { rows, error } = useRows(workspace, top(name), { q: "", status: "", sort: "" });
  if (error) return <Failure error={error} />;
  if (rows.length === 0) return null;
  return (
    <Card title={titleOf(kind.plural)}>
      <ul class="recent">
        {rows.slice(0, ROWS_MAX).map((row) => (
          <li key={nameOf(row)}>
            <a class="grow" href={places.item(workspace, top(name), nameOf(row))}>
              {nameOf(row)}
            </a>
            <Badge tone={toneOf(textAt(row, "status"))}>{textAt(row, "status") || "kept"}</Badge>
            <span class="quiet">{ageOf(createdAt(row))}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
