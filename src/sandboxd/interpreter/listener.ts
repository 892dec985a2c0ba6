/** The caller of an execution, who gets its messages as lines. */
import type { ServerResponse } from "node:http";
import { type Listener, lineOf, type Message } from "./wire.ts";

export const begin = (res: ServerResponse): ServerResponse =>
  res.writeHead(200, { "Content-Type": "application/x-ndjson", "Cache-Control": "no-store" });

/** The head is sent with the first message, so that a refusal can still have its own status. */
export function listenerOf(res: ServerResponse): Listener {
  const leaving = new AbortController();
  res.once("close", () => leaving.abort());
  const { signal } = leaving;
  let draining: Promise<void> | null = null;
  return {
    signal,
    tell(message: Message) {
      if (signal.aborted) return true;
      if (!res.headersSent) begin(res);
      return res.write(`${JSON.stringify(lineOf(message))}\n`);
    },
    drained: () => {
      // All that wait share one promise: output that comes before a pause takes hold asks again with each message.
      draining ??= new Promise<void>((resolve) => {
        const done = (): void => {
          draining = null;
          res.off("drain", done);
          signal.removeEventListener("abort", done);
          resolve();
        };
        res.once("drain", done);
        signal.addEventListener("abort", done, { once: true });
      });
      return draining;
    },
  };
}
