/**
 * Turns of lists. A list walks through a tree that a workload made, of any depth and width, so few lists run at once,
 * workspaces take turns, and a list ends with its client or after its time.
 */
import type { ServerResponse } from "node:http";
import { FairQueue } from "../lib/fair-queue.ts";
import { SECOND_MS } from "../lib/time/clock.ts";
import { S3Error } from "./wire/s3-error.ts";

/** Each list has up to 50 open descriptors, and keeps one thread of the file system busy. */
const AT_ONCE = 16;
const AT_ONCE_PER_WORKSPACE = 4;
/** Clients ask again after a refusal. */
const WAITING_PER_WORKSPACE_MAX = 128;
/** A page of 1,000 keys takes milliseconds. Only folders without a single object, by the million, take longer. */
const LIST_MS_MAX = 60 * SECOND_MS;

export type Turn = <T>(work: (signal: AbortSignal) => Promise<T>) => Promise<T>;

export type ListTurns = ReturnType<typeof createListTurns>;

export function createListTurns() {
  const turns = new FairQueue({
    atOnce: AT_ONCE,
    atOncePerOwner: AT_ONCE_PER_WORKSPACE,
    waitingMax: WAITING_PER_WORKSPACE_MAX,
  });
  return (workspace: string, res: ServerResponse): Turn =>
    async (work) => {
      const left = new AbortController();
      const onClose = (): void => left.abort(new S3Error("RequestTimeout", "The client has left."));
      res.once("close", onClose);
      if (res.closed || res.destroyed) onClose();
      try {
        const done = turns.run(workspace, async () => {
          left.signal.throwIfAborted();
          const late = setTimeout(() => left.abort(tooLong()), LIST_MS_MAX);
          try {
            return await work(left.signal);
          } finally {
            clearTimeout(late);
          }
        });
        if (!done) throw new S3Error("SlowDown", "Too many lists of this workspace wait. Reduce your request rate.");
        return await done;
      } finally {
        res.off("close", onClose);
      }
    };
}

const tooLong = (): S3Error =>
  new S3Error(
    "ServiceUnavailable",
    `The list takes longer than ${LIST_MS_MAX / SECOND_MS} s, because many folders have no object. Ask for a narrower prefix.`,
  );
