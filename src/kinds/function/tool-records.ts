/** What the gateway learns about the tools of pinned servers, written into their records. */
import {
  afterDeployment,
  afterListing,
  type ListedTool,
  stateOfTools,
  type ToolState,
} from "../../contract/tools/tool-state.ts";
import type { Deps } from "../port.ts";

/** A server that lists something new each time makes one record in this time. */
const RECORD_MS = 1000;
/** Servers whose last record is remembered; a full list is emptied. */
const REMEMBERED_MAX = 10_000;
const NAMES_SHOWN_MAX = 10;

interface Place {
  workspace: string;
  uid: string;
}

export interface ToolRecords {
  listed(place: Place, tools: readonly ListedTool[]): void;
  deployed(place: Place, revision: string, tools: readonly ListedTool[]): Promise<void>;
}

export function createToolRecords({ store, clock, log }: Pick<Deps, "store" | "clock" | "log">): ToolRecords {
  const lastMs = new Map<string, number>();

  async function record({ workspace, uid }: Place, tools: readonly ListedTool[]): Promise<void> {
    await store.resources.update(workspace, uid, (current) => {
      const before = stateOfTools(current.state);
      const next = afterListing(before, tools, clock.now());
      if (next === null) return null;
      const message = sentenceOf(before, next);
      const event = message === null ? {} : { event: { type: "tools_withheld", message } };
      return { state: { ...current.state, tools: next }, ...event };
    });
  }

  return {
    listed(place, tools) {
      const nowMs = clock.now();
      if (nowMs - (lastMs.get(place.uid) ?? 0) < RECORD_MS) return;
      if (lastMs.size >= REMEMBERED_MAX) lastMs.clear();
      lastMs.set(place.uid, nowMs);
      record(place, tools).catch((error: unknown) =>
        log.error({ uid: place.uid, err: error }, "the tools of a server were not recorded"),
      );
    },
    async deployed({ workspace, uid }, revision, tools) {
      await store.resources.update(workspace, uid, (current) => ({
        state: { ...current.state, tools: afterDeployment(tools, revision) },
      }));
    },
  };
}

/** Null when no tool is newly withheld. */
function sentenceOf(before: ToolState, { approved, withheld }: ToolState): string | null {
  const fresh = Object.entries(withheld).filter(([name, { hash }]) => before.withheld[name]?.hash !== hash);
  if (fresh.length === 0) return null;
  const shown = fresh.slice(0, NAMES_SHOWN_MAX).map(([name]) => {
    const why = Object.hasOwn(approved, name) ? "changed" : "new";
    return `${JSON.stringify(name)} (${why})`;
  });
  const more = fresh.length > shown.length ? ` and ${fresh.length - shown.length} more` : "";
  return `Tools are withheld until an admin approves their definitions: ${shown.join(", ")}${more}.`;
}
