/** Waits for changes of a kind, for --watch: woken by the server's events, or by the clock where there are none. */
import type { Client } from "../../client/client.ts";
import { OPERATIONS } from "../../kinds/index.ts";
import type { Noun } from "../nouns.ts";

/** Seconds between looks while events come: computed members change without an event. */
const QUIET_SECONDS = 30;
/** Pause before the next try after a stream has ended. */
const AGAIN_MS = 1000;

export interface News {
  /** Resolves at the next event, at the latest after `seconds`; without a number, as long as is sensible. */
  wait(seconds: number | undefined, otherwise: number): Promise<void>;
}

/** `client` null or a noun that is no kind: only the clock wakes. */
export function newsOf(noun: Noun | null, client: Client | null, signal: AbortSignal): News {
  let wake = (): void => {};
  let isFresh = false;
  let isConnected = false;
  const tell = (): void => {
    isFresh = true;
    wake();
  };
  signal.addEventListener("abort", () => wake());
  const operation = OPERATIONS.find(({ id }) => id === "watchChanges");

  async function listen(kind: string, { events }: Client): Promise<void> {
    while (operation && !signal.aborted) {
      try {
        for await (const { event } of events(operation, { query: { kinds: kind }, signal })) {
          isConnected = event !== "end";
          tell();
        }
      } catch {
        // A server without this operation, credentials without the scope, a broken connection: the clock wakes then.
      }
      isConnected = false;
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS).unref());
    }
  }
  if (noun?.kind && client) void listen(noun.kind.name, client);

  return {
    async wait(seconds, otherwise) {
      const waitS = seconds ?? (isConnected ? QUIET_SECONDS : otherwise);
      if (!isFresh && !signal.aborted) {
        const { promise, resolve } = Promise.withResolvers<void>();
        const timer = setTimeout(resolve, waitS * 1000);
        wake = resolve;
        await promise;
        clearTimeout(timer);
      }
      isFresh = false;
    },
  };
}
