/**
 * News of the workspace: the server tells what has changed, and what is shown of it is read again. Without the stream
 * lists and pages ask from time to time.
 */
import { signal } from "@preact/signals";
import { eventsOf } from "../lib/events.ts";
import { send } from "./call.ts";
import { ApiFailure } from "./failure.ts";
import { queries } from "./query.ts";

export const isLive = signal(false);

/** Changes within it after a reading cause one more. */
const GATHER_MS = 80;
const AGAIN_MIN_MS = 500;
const AGAIN_MAX_MS = 20_000;

/** Listens until the returned function is called. */
export function listen(workspace: string): () => void {
  const ending = new AbortController();
  void follow(workspace, ending.signal);
  return () => {
    ending.abort();
    isLive.value = false;
  };
}

async function follow(workspace: string, ending: AbortSignal): Promise<void> {
  let lastId = "";
  let waitMs = AGAIN_MIN_MS;
  const told = gathering(workspace);
  while (!ending.aborted) {
    try {
      const headers = lastId === "" ? {} : { "last-event-id": lastId };
      const { body } = await send({ path: "/watch", workspace, headers, signal: ending });
      if (body === null) return;
      for await (const { id, event, data } of eventsOf(body)) {
        if (id !== "") lastId = id;
        if (event === "end") break;
        isLive.value = true;
        waitMs = AGAIN_MIN_MS;
        if (event === "change") told((JSON.parse(data) as { kind: string }).kind);
        else if (event === "reset" || event === "ready") told(null);
      }
    } catch (error) {
      // A refusal stays one: these credentials may not watch, and the pages ask by themselves.
      if (error instanceof ApiFailure && error.status >= 400 && error.status !== 401 && error.status < 500) return;
    }
    isLive.value = false;
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    waitMs = Math.min(2 * waitMs, AGAIN_MAX_MS);
  }
}

/** Reads kinds, or null for all, again: the first at once, and those that come soon after it together. */
function gathering(workspace: string): (kind: string | null) => void {
  const kinds = new Set<string | null>();
  let isWaiting = false;
  const readAgain = (): void => {
    for (const kind of kinds.has(null) ? [null] : kinds)
      void queries.invalidateQueries({ queryKey: kind === null ? ["kind"] : ["kind", kind, workspace] });
    void queries.invalidateQueries({ queryKey: ["overview", workspace] });
    kinds.clear();
  };
  const rest = (): void => {
    isWaiting = kinds.size > 0;
    if (!isWaiting) return;
    readAgain();
    setTimeout(rest, GATHER_MS);
  };
  return (kind) => {
    kinds.add(kind);
    if (isWaiting) return;
    isWaiting = true;
    readAgain();
    setTimeout(rest, GATHER_MS);
  };
}
