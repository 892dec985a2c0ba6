/** Terminals of a sandbox, each with a shell of its own. All stay connected; one is shown. */
import { useState } from "preact/hooks";
import type { Workload } from "../../api/workload.ts";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Shell } from "./terminal.tsx";

/** Each holds a connection and its lines in memory; a sandbox has 64 terminals for all of its people. */
const TERMINALS_MAX = 8;

interface Terminals {
  /** Ids of sessions in the sandbox, in the order of the tabs. */
  ids: readonly string[];
  shown: string;
}

export function TerminalTab({ workload }: { workload: Workload }) {
  const key = `console.terminals.${workload.workspace}/${workload.name}`;
  const [{ ids, shown }, set] = useState<Terminals>(() => remembered(key));
  // A page that is loaded again finds its shells again. The ids open nothing without the person's token.
  const change = (next: Terminals): void => {
    sessionStorage.setItem(key, JSON.stringify(next));
    set(next);
  };
  const open = (): void => {
    const id = newId();
    change({ ids: [...ids, id], shown: id });
  };
  const close = (id: string): void => {
    const rest = ids.filter((one) => one !== id);
    const last = rest.at(-1);
    change(last === undefined ? fresh() : { ids: rest, shown: id === shown ? last : shown });
  };
  return (
    <div class="stack">
      <ul class="shells row" aria-label="Terminals">
        {ids.map((id, at) => (
          <li key={id} class={id === shown ? "shown" : ""}>
            <button type="button" aria-current={id === shown} onClick={() => change({ ids, shown: id })}>
              Terminal {at + 1}
            </button>
            <button type="button" aria-label={`Close terminal ${at + 1}`} onClick={() => close(id)}>
              ×
            </button>
          </li>
        ))}
        <li>
          <Button
            kind="bare"
            isIcon
            label="New terminal"
            unable={ids.length < TERMINALS_MAX ? null : `A page has at most ${TERMINALS_MAX} terminals`}
            onClick={open}
          >
            <Icon name="plus" />
          </Button>
        </li>
      </ul>
      {ids.map((id, at) => (
        <Shell key={id} workload={workload} sessionId={id} label={`Terminal ${at + 1}`} isShown={id === shown} />
      ))}
    </div>
  );
}

const newId = (): string => `console-${crypto.randomUUID()}`;

function fresh(): Terminals {
  const id = newId();
  return { ids: [id], shown: id };
}

function remembered(key: string): Terminals {
  const text = sessionStorage.getItem(key);
  const kept = text === null ? fresh() : (JSON.parse(text) as Terminals);
  sessionStorage.setItem(key, JSON.stringify(kept));
  return kept;
}
