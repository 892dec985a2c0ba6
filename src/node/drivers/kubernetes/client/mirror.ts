/**
 * The objects of one kind as the API server has them, kept up to date: a list, then a watch from the version of that
 * list. A watch that ends goes on from the last version that it told; a version that has expired (410), or an answer that
 * cannot be read, leads to a new list. Nobody relies on the mirror alone: it says when to look, and the API server says
 * what is there.
 */
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { backoffMs } from "../../../../lib/backoff.ts";
import type { KubeClient } from "./kube-client.ts";
import { isRefusal } from "./refusal.ts";

const RETRY = { baseMs: 100, maxMs: 10_000 };
/** The API server ends a watch after this long. */
const WATCH_SECONDS = 240;
/** A watch that is still open this much later is one whose connection has died. */
const SILENCE_MS = 30_000;
const GONE = 410;

const eventSchema = z.object({ type: z.string(), object: z.unknown() });
const metaSchema = z.object({
  metadata: z.object({
    name: z.string().default(""),
    resourceVersion: z.string().default(""),
    labels: z.record(z.string(), z.string()).nullish(),
  }),
});
type Meta = z.output<typeof metaSchema>["metadata"];
const errorSchema = z.object({ code: z.number().optional() });

export interface MirrorOptions {
  client: KubeClient;
  path: string;
  labelSelector: string;
  /** What listeners call an object; default: its name. */
  keyOf?: (metadata: Pick<Meta, "name" | "labels">) => string;
  /** Trouble that the mirror goes on after. */
  onTrouble?: (error: unknown) => void;
  watchSeconds?: number;
  silenceMs?: number;
}

type Listener = () => void;

export class Mirror {
  readonly #options: MirrorOptions;
  /** Keys of the objects that are there, by their names. */
  #keys = new Map<string, string>();
  /** The name that was told last for each key. */
  readonly #names = new Map<string, string>();
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #end = new AbortController();
  #running: Promise<void> | null = null;
  #lists = 0;

  constructor(options: MirrorOptions) {
    this.#options = options;
  }

  /** How often the objects were listed, for tests. */
  get lists(): number {
    return this.#lists;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Calls the listener whenever the object of that key may have changed. */
  onChange(key: string, listener: Listener): () => void {
    const all = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, all.add(listener));
    return () => {
      all.delete(listener);
      if (all.size === 0 && this.#listeners.get(key) === all) this.#listeners.delete(key);
    };
  }

  /** A hint: the object may be gone, or have another name by now. */
  nameOf(key: string): string | undefined {
    return this.#names.get(key);
  }

  async stop(): Promise<void> {
    this.#end.abort(new Error("the mirror has stopped"));
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#end;
    let version: string | null = null;
    for (let failures = 0; !signal.aborted; ) {
      try {
        version = version === null ? await this.#list() : await this.#watch(version);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        if (isRefusal(error, GONE) || !isConnectionTrouble(error)) version = null;
        this.#options.onTrouble?.(error);
        await delay(backoffMs(failures, RETRY), undefined, { signal }).catch(() => {});
        failures += 1;
      }
    }
  }

  async #list(): Promise<string> {
    const { client, path, labelSelector } = this.#options;
    const { signal } = this.#end;
    const { items, resourceVersion } = await client.list(metaSchema, path, { query: { labelSelector }, signal });
    this.#lists += 1;
    const before = this.#keys;
    this.#keys = new Map();
    this.#names.clear();
    for (const { metadata } of items) this.#note(metadata);
    for (const key of new Set([...before.values(), ...this.#keys.values()])) this.#tell(key);
    return resourceVersion;
  }

  /** Answers the version to watch on from, or null where the objects have to be listed again. */
  async #watch(from: string): Promise<string | null> {
    const { client, path, labelSelector, watchSeconds = WATCH_SECONDS, silenceMs = SILENCE_MS } = this.#options;
    const silent = AbortSignal.timeout(watchSeconds * 1000 + silenceMs);
    const signal = AbortSignal.any([this.#end.signal, silent]);
    const query = {
      ...{ watch: true, allowWatchBookmarks: true, timeoutSeconds: watchSeconds },
      ...{ labelSelector, resourceVersion: from },
    };
    let version = from;
    try {
      for await (const line of client.lines(path, { query, signal })) {
        const { type, object } = eventSchema.parse(line);
        if (type === "ERROR") {
          const { code } = errorSchema.parse(object);
          if (code === GONE) return null;
          throw new Error(`the watch was ended with code ${code}`);
        }
        const { metadata } = metaSchema.parse(object);
        version = metadata.resourceVersion;
        if (type === "BOOKMARK") continue;
        const before = this.#keys.get(metadata.name);
        if (type === "DELETED") this.#forget(metadata.name);
        else this.#note(metadata);
        for (const key of new Set([before ?? this.#keyOf(metadata), this.#keyOf(metadata)])) this.#tell(key);
      }
    } catch (error) {
      if (this.#end.signal.aborted || isRefusal(error, GONE)) throw error;
      if (!isConnectionTrouble(error)) throw error;
      this.#options.onTrouble?.(error);
      // The next watch is not at once, for an API server that hangs up on every one.
      await delay(backoffMs(0, RETRY), undefined, { signal: this.#end.signal }).catch(() => {});
    }
    return version;
  }

  #keyOf(metadata: Meta): string {
    return this.#options.keyOf?.(metadata) ?? metadata.name;
  }

  #note(metadata: Meta): void {
    this.#forget(metadata.name);
    const key = this.#keyOf(metadata);
    this.#keys.set(metadata.name, key);
    this.#names.set(key, metadata.name);
  }

  #forget(name: string): void {
    const key = this.#keys.get(name);
    this.#keys.delete(name);
    if (key !== undefined && this.#names.get(key) === name) this.#names.delete(key);
  }

  #tell(key: string): void {
    for (const listener of [...(this.#listeners.get(key) ?? [])]) listener();
  }
}

/** Neither a refusal of the API server nor an answer that makes no sense. */
const isConnectionTrouble = (error: unknown): boolean =>
  error instanceof Error &&
  !isRefusal(error, GONE) &&
  !(error instanceof SyntaxError) &&
  !(error instanceof z.ZodError) &&
  ("code" in error || error.name === "TimeoutError" || error.name === "AbortError");
