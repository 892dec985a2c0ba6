/**
 * One client's view of the feed: changes in its workspace, of its kinds, of what its role may see. Changes of one
 * resource that come together are told once. A client that does not keep up is told to read everything again.
 */
import type { EventOutput, EventStream } from "../../contract/event-stream.ts";
import { keptOf, mayEnter } from "../../contract/kept-access.ts";
import type { Role } from "../../contract/operation.ts";
import type { Store } from "../../store/store.ts";
import type { Feed, Told } from "./feed.ts";

/** Changes are collected for this long: a person sees no difference, and a burst is one write. */
const COLLECT_MS = 20;
/** Resources with a change that the client has not been told of; with more of them it reads its lists again. */
const PENDING_MAX = 1000;

export interface ChangeStreamOptions {
  feed: Feed;
  store: Pick<Store, "resources">;
  workspace: string;
  role: Role | null;
  kinds: ReadonlySet<string>;
  /** The last event that the client has seen; null = it begins now. */
  after: string | null;
}

export const changeStream = (options: ChangeStreamOptions): EventStream => ({
  start(out) {
    const view = new View(options, out);
    const unsubscribe = options.feed.subscribe(view);
    view.begin();
    return {
      onDrain: () => view.flushSoon(),
      stop: () => {
        unsubscribe();
        view.stop();
      },
    };
  },
});

class View {
  readonly #options: ChangeStreamOptions;
  readonly #out: EventOutput;
  /** By uid, in the order of the latest change. */
  readonly #pending = new Map<string, Told>();
  #isReset = false;
  #timer: NodeJS.Timeout | null = null;
  #writing = false;

  constructor(options: ChangeStreamOptions, out: EventOutput) {
    this.#options = options;
    this.#out = out;
  }

  begin(): void {
    const { feed, after } = this.#options;
    const missed = after === null ? [] : feed.since(after);
    if (missed === null) {
      this.gap();
      return;
    }
    for (const change of missed) this.changed(change);
    this.#out.send({ event: "ready", data: {}, ...(missed.length === 0 ? { id: feed.latest } : {}) });
  }

  readonly changed = (change: Told): void => {
    const { workspace, kinds } = this.#options;
    if (this.#isReset || change.workspace !== workspace || !kinds.has(change.kind)) return;
    this.#pending.delete(change.uid);
    this.#pending.set(change.uid, change);
    if (this.#pending.size > PENDING_MAX) this.gap();
    else this.flushSoon();
  };

  readonly gap = (): void => {
    this.#pending.clear();
    this.#isReset = true;
    this.flushSoon();
  };

  flushSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      void this.#flush().catch((error: unknown) => this.#out.end(`The changes cannot be read: ${String(error)}`));
    }, COLLECT_MS);
  }

  stop(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#pending.clear();
  }

  async #flush(): Promise<void> {
    if (this.#writing) return;
    this.#writing = true;
    try {
      while (this.#out.hasRoom() && (this.#isReset || this.#pending.size > 0)) {
        if (this.#isReset) {
          this.#isReset = false;
          this.#out.send({ event: "reset", data: {}, id: this.#options.feed.latest });
          continue;
        }
        const [uid, change] = this.#pending.entries().next().value as [string, Told];
        this.#pending.delete(uid);
        if (change.parent === "" || (await this.#mayEnter(change.parent)))
          this.#out.send({ event: "change", data: toWire(change), id: change.id });
      }
    } finally {
      this.#writing = false;
    }
  }

  /** Whether the caller may read what is inside this resource. What is inside a resource that is gone, is gone too. */
  async #mayEnter(uid: string): Promise<boolean> {
    const { store, workspace, role } = this.#options;
    const resource = await store.resources.getByUid(workspace, uid);
    if (!resource || !mayEnter(keptOf(resource), role)) return false;
    return resource.parent === "" || this.#mayEnter(resource.parent);
  }
}

const toWire = ({ kind, name, uid, parent, version }: Told) => ({
  ...{ kind, name, uid },
  ...(parent === "" ? {} : { parent }),
  ...(version === null ? { deleted: true as const } : { version }),
});
