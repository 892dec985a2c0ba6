/** Three starts of one click each. */
import { useAction } from "../../api/query.ts";
import { createResource } from "../../api/resources.ts";
import { go } from "../../lib/location.ts";
import { nameOf } from "../../lib/members.ts";
import { randomName } from "../../lib/words.ts";
import { Icon, type IconName } from "../../ui/icon.tsx";
import { Failure } from "../../ui/notice.tsx";
import { places, top } from "../../views/places.ts";

interface Start {
  kind: string;
  icon: IconName;
  title: string;
  text: string;
  /** What is created; null leads to the templates. */
  body: (() => object) | null;
}

const STARTS: readonly Start[] = [
  {
    ...{ kind: "sandbox", icon: "box", title: "Start a sandbox" },
    text: "A machine of your own, with a terminal and files.",
    body: () => ({ metadata: { name: randomName("box") }, spec: {} }),
  },
  {
    ...{ kind: "model", icon: "model", title: "Try a model" },
    text: "A mock that answers at once and costs nothing.",
    body: () => ({ metadata: { name: randomName("mock") }, spec: { runtime: { type: "mock", model: "mock" } } }),
  },
  {
    ...{ kind: "agent", icon: "agent", title: "Deploy an agent" },
    text: "From a template, or a folder of your own.",
    body: null,
  },
];

export const Starts = ({ workspace }: { workspace: string }) => (
  <div class="starts">
    {STARTS.map((start) => (
      <StartCard key={start.title} start={start} workspace={workspace} />
    ))}
  </div>
);

function StartCard({ start: { kind, icon, title, text, body }, workspace }: { start: Start; workspace: string }) {
  const { run, busy, error } = useAction(async () => {
    if (body === null) return go(places.page(workspace, "templates"));
    const made = await createResource(workspace, top(kind), body());
    go(places.item(workspace, top(kind), nameOf(made)));
  });
  return (
    <div class="stack">
      <button type="button" class="start" aria-busy={busy} disabled={busy} onClick={() => void run(null)}>
        <Icon name={icon} size={20} />
        <span>
          <strong>{title}</strong>
          <span class="quiet">{text}</span>
        </span>
      </button>
      {error ? <Failure error={error} /> : null}
    </div>
  );
}
