/** Watches of folders for E2B's clients: as a stream, or asked for again and again. */
import { type BytePath, toText } from "../files/byte-path.ts";
import { ASIDE_PREFIX } from "../files/file-io.ts";
import { FolderWatch, type WatchEvent } from "../files/folder-watch.ts";
import { randomWord } from "../random-word.ts";
import { type Message, type Rpc, RpcError, type Send, textOf } from "./connect.ts";

const WATCHERS_MAX = 256;
/** Events kept for a client that does not ask; the newest are dropped. */
const WAITING_MAX = 10_000;
const ID_CHARS = 16;

class Watcher {
  readonly #watch: FolderWatch;
  #waiting: Message[] = [];
  #dropped = false;
  #wake = (): void => {};

  constructor(root: BytePath, recursive: boolean) {
    this.#watch = FolderWatch.open(root, {
      recursive,
      onEvent: (event) => {
        if (event.error !== null || this.#waiting.length >= WAITING_MAX) this.#dropped = true;
        else this.#waiting.push(...eventsOf(event, toText(root)));
        this.#wake();
      },
    });
  }

  /** The events since the last time. Throws when some were lost, for the client would otherwise miss changes. */
  take(): Message[] {
    if (this.#dropped) throw new RpcError("resource_exhausted", "More happened than could be kept: watch again.");
    return this.#waiting.splice(0);
  }

  /** Resolves with the next event, or when the time is up or the client has left. */
  async next(waitMs: number, signal: AbortSignal): Promise<void> {
    if (this.#waiting.length > 0 || this.#dropped || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, waitMs);
    this.#wake = resolve;
    const left = (): void => resolve();
    signal.addEventListener("abort", left, { once: true });
    await promise;
    clearTimeout(timer);
    signal.removeEventListener("abort", left);
  }

  close(): void {
    this.#watch.close();
  }
}

/** Names are relative to the folder that is watched. An event may report several operations at once. */
function eventsOf({ op, name, path }: WatchEvent, root: string): Message[] {
  if (name.startsWith(ASIDE_PREFIX)) return []; // E2B writes files in place; its clients know no names of our own
  const below = `${path}/${name}`.slice(root === "/" ? 1 : root.length + 1);
  return op.split("|").map((word) => ({ name: below, type: `EVENT_TYPE_${word}` }));
}

const isRecursive = ({ message }: Rpc): boolean => message.recursive === true;

export async function watchDir(rpc: Rpc, root: BytePath, send: Send): Promise<void> {
  const { signal } = rpc.call;
  const watcher = new Watcher(root, isRecursive(rpc));
  const endMs = rpc.timeoutMs === null ? Number.POSITIVE_INFINITY : performance.now() + rpc.timeoutMs;
  try {
    let open = await send({ start: {} });
    while (open && !signal.aborted) {
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) throw new RpcError("deadline_exceeded", "The time of this watch is over.");
      await watcher.next(Math.min(rpc.keepaliveMs, leftMs), signal);
      const events = watcher.take();
      if (events.length === 0) open = await send({ keepalive: {} });
      for (const event of events) open = open && (await send({ filesystem: event }));
    }
  } finally {
    watcher.close();
  }
}

const watchers = new Map<string, Watcher>();

export function createWatcher(rpc: Rpc, root: BytePath): Message {
  if (watchers.size >= WATCHERS_MAX) throw new RpcError("resource_exhausted", `${WATCHERS_MAX} watchers are open.`);
  const watcherId = randomWord(ID_CHARS);
  watchers.set(watcherId, new Watcher(root, isRecursive(rpc)));
  return { watcherId };
}

export function getWatcherEvents({ message }: Rpc): Message {
  return { events: watcherOf(message).take() };
}

export function removeWatcher({ message }: Rpc): Message {
  watcherOf(message).close();
  watchers.delete(textOf(message, "watcherId"));
  return {};
}

function watcherOf(message: Message): Watcher {
  const id = textOf(message, "watcherId");
  const found = watchers.get(id);
  if (!found) throw new RpcError("not_found", `There is no watcher "${id}".`);
  return found;
}
