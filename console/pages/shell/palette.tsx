/** Goes anywhere and runs any operation, by typing a part of its name. */
import "./palette.css";
import { useEffect, useMemo, useState } from "preact/hooks";
import { useAnswer } from "../../api/query.ts";
import type { OperationFacts } from "../../lib/facts.ts";
import { go } from "../../lib/location.ts";
import { titleOf } from "../../lib/titles.ts";
import { useModal } from "../../ui/dialog.tsx";
import { GROUPS } from "../../views/navigation.ts";
import { kindNamed, places, top } from "../../views/places.ts";
import { isPaletteOpen } from "./keys.tsx";
import { OperationDialog } from "./operation-dialog.tsx";
import { type Choice, useFound } from "./search.ts";

const SHOWN_MAX = 40;

export function Palette({ workspace }: { workspace: string }) {
  const [operation, setOperation] = useState<OperationFacts | null>(null);
  if (operation !== null)
    return <OperationDialog operation={operation} workspace={workspace} onClose={() => setOperation(null)} />;
  if (!isPaletteOpen.value) return null;
  return <Open workspace={workspace} onOperation={setOperation} />;
}

function Open({ workspace, onOperation }: { workspace: string; onOperation(operation: OperationFacts): void }) {
  const own = useModal();
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const { data: operations } = useAnswer({
    key: ["operations"],
    ask: async () => (await import("../../generated/operations.ts")).OPERATIONS,
  });
  const fixed = useMemo(
    () => [
      ...goChoices(workspace),
      ...(operations ?? []).map((one) => ({ title: one.summary, about: one.id, choose: () => onOperation(one) })),
    ],
    [workspace, operations, onOperation],
  );
  const found = useFound(workspace, typed);
  const choices = [...found.choices, ...matching(fixed, typed)].slice(0, SHOWN_MAX);
  const isLoading = operations === undefined || found.isAsked;
  const chosen = Math.min(at, choices.length - 1);
  const close = (): void => {
    isPaletteOpen.value = false;
  };
  const choose = (choice: Choice | undefined): void => {
    if (!choice) return;
    close();
    choice.choose();
  };
  // Enter before anything is found chooses what is found first.
  const [isEntered, setEntered] = useState(false);
  useEffect(() => {
    if (!isEntered || (choices.length === 0 && isLoading)) return;
    setEntered(false);
    choose(choices[chosen]);
  }, [isEntered, choices.length, isLoading]);
  const move = (by: number): void => setAt((chosen + by + choices.length) % Math.max(1, choices.length));
  return (
    <dialog ref={own} class="dialog top palette" aria-label="Search or run" onClose={close}>
      <input
        type="text"
        list={undefined}
        // biome-ignore lint/a11y/noRedundantRoles: without a `list` the role is not implied
        role="combobox"
        aria-label="Search or run"
        aria-expanded="true"
        aria-controls="choices"
        aria-activedescendant={`choice-${chosen}`}
        placeholder="Go to, search, or run…"
        value={typed}
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          setAt(0);
          setEntered(false);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") move(1);
          else if (event.key === "ArrowUp") move(-1);
          else if (event.key === "Enter") setEntered(true);
          else return;
          event.preventDefault();
        }}
      />
      <div class="choices" id="choices" role="listbox" aria-label="Choices">
        {choices.map((choice, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field
          <div
            key={`${choice.about} ${choice.title}`}
            id={`choice-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            onMouseEnter={() => setAt(index)}
            onClick={() => choose(choice)}
          >
            {choice.title}
            <span class="quiet mono">{choice.about}</span>
          </div>
        ))}
      </div>
    </dialog>
  );
}

const goChoices = (workspace: string): Choice[] => [
  { title: "Home", about: "go", choose: () => go(places.home(workspace)) },
  ...GROUPS.flatMap(({ entries }) =>
    entries.map((entry): Choice => {
      if ("page" in entry)
        return { title: entry.title, about: "go", choose: () => go(places.page(workspace, entry.page)) };
      const path = places.list(workspace, top(entry.kind));
      return { title: titleOf(kindNamed(entry.kind).plural), about: "go", choose: () => go(path) };
    }),
  ),
];

/** Every word must be somewhere; titles that begin with the text come first. */
function matching(choices: readonly Choice[], typed: string): Choice[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const start = words.join(" ");
  return choices
    .filter(({ title, about }) => words.every((word) => `${title} ${about}`.toLowerCase().includes(word)))
    .sort((a, b) => Number(b.title.toLowerCase().startsWith(start)) - Number(a.title.toLowerCase().startsWith(start)));
}
