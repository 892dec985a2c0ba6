/**
 * Keeps this node's entry in the table of nodes, and a view of the others. On PostgreSQL a heartbeat says that the node
 * lives; a SQLite file has one server, which needs none.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Running } from "../../lib/lifecycle.ts";
import { SECOND_MS } from "../../lib/time/clock.ts";
import { UsageError } from "../../lib/usage-error.ts";
import type { NodeIdentity } from "../../node/identity.ts";
import type { NodeInfo, Nodes } from "../../node/nodes.ts";
import type { NodeFacts } from "../../store/nodes/nodes.ts";
import type { Store } from "../../store/store.ts";
import type { Log } from "../port.ts";

const BEAT_MAX_MS = 5 * SECOND_MS;
/** Heartbeats within the time after which a node counts as lost. */
const BEATS_BEFORE_LOST = 4;
const CLAIM_RETRY_MS = 250;

export interface RegistryOptions {
  store: Store;
  log: Log;
  identity: NodeIdentity;
  /** Names the data folder, to tell a restart from a copied folder. */
  folder: string;
  /** Names this process. */
  session: string;
  /** What is written down with every heartbeat. */
  facts(): Omit<NodeFacts, "name" | "address">;
  /** Whether workloads can run on this node; see NodeInfo.runs. */
  runs(): boolean;
  lostAfterMs: number;
  /** See Nodes.shared. */
  shared: boolean;
  monotonicMs(): number;
}

export interface NodeRegistry extends Running {
  nodes: Nodes;
  /** Says where other nodes reach this one. */
  setAddress(address: string): Promise<void>;
  /** Reads the nodes again. */
  refresh(): Promise<void>;
}

export async function startNodeRegistry(options: RegistryOptions): Promise<NodeRegistry> {
  const registry = new Registry(options);
  await registry.start();
  return registry;
}

class Registry implements NodeRegistry {
  readonly nodes: Nodes;
  readonly #options: RegistryOptions;
  /** A SQLite file has one server. */
  readonly #alone: boolean;
  readonly #listeners = new Set<() => void>();
  #list: readonly NodeInfo[] = [];
  #address: string | null = null;
  /** Whether this process speaks for the node; false while a server with a copy of the folder does. */
  #holds = false;
  /** Since when this server has heard of the database without a gap; null while it has not. */
  #surelySince: number | null = null;
  #lastBeat = 0;
  #turn: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #unsubscribe = (): void => {};

  constructor(options: RegistryOptions) {
    this.#options = options;
    this.#alone = options.store.database.dialect === "sqlite";
    const { identity, shared, lostAfterMs, monotonicMs } = options;
    const find = (id: string): NodeInfo | null => this.#list.find((node) => node.id === id) ?? null;
    let last: NodeInfo | null = null;
    const isLive = (id: string): boolean => id === identity.id || (find(id)?.live ?? false);
    this.nodes = {
      get self() {
        // A node that was removed from the table stays itself until its next heartbeat enters it again.
        last = find(identity.id) ?? last;
        const self = last;
        if (!self) throw new Error("the nodes were asked for before this node was registered");
        return self;
      },
      shared,
      lostAfterMs,
      refresh: () => this.refresh(),
      // Whether this node runs workloads is known here before it is known in the table.
      list: () => this.#list.map((node) => (node.id === identity.id ? { ...node, runs: options.runs() } : node)),
      find,
      isLive,
      isLost: (id) => !isLive(id) && this.#surelySince !== null && monotonicMs() - this.#surelySince >= lostAfterMs,
      addressOf: (id) => find(id)?.address ?? null,
      nameOf: (id) => find(id)?.name ?? id,
      owns: (node) => shared || this.#alone || (this.#holds && node === identity.id),
      onChange: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
    };
  }

  async start(): Promise<void> {
    const { store, log, lostAfterMs, identity } = this.#options;
    await this.#claim();
    if (this.#alone) await store.nodes.removeOthers(identity.id);
    await this.refresh();
    this.#heard();
    this.#unsubscribe = store.nodes.onChange(() => {
      this.#turn = this.#turn
        .then(() => this.refresh())
        .catch((error: unknown) => log.warn({ err: error }, "the nodes could not be read"));
    });
    if (this.#alone) return;
    const everyMs = Math.min(BEAT_MAX_MS, lostAfterMs / BEATS_BEFORE_LOST);
    this.#timer = setInterval(() => {
      this.#turn = this.#turn.then(() => this.#beat());
    }, everyMs).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#unsubscribe();
    await this.#turn;
  }

  async setAddress(address: string): Promise<void> {
    this.#address = address;
    await this.#register();
    await this.refresh();
  }

  async refresh(): Promise<void> {
    const { store, lostAfterMs } = this.#options;
    const rows = await store.nodes.list(lostAfterMs);
    const list = rows.map((node) => ({ ...node, runs: node.capabilities.length > 0 }));
    const before = shape(this.#list);
    this.#list = this.#alone ? list.map((node) => ({ ...node, live: true })) : list;
    if (shape(list) !== before) for (const listener of this.#listeners) listener();
  }

  /** Waits for the lease of a server that died a moment ago with another folder; refuses while that server lives. */
  async #claim(): Promise<void> {
    const { store, lostAfterMs, identity } = this.#options;
    for (let seen: number | null = null; !(await this.#register()); await pause(CLAIM_RETRY_MS)) {
      const other = (await store.nodes.list(lostAfterMs)).find(({ id }) => id === identity.id);
      if (!other) continue;
      seen ??= other.heartbeatAt;
      if (other.heartbeatAt > seen)
        throw new UsageError(
          `Another server already runs as node ${identity.id} on this database: one data folder is a copy of the other.`,
          "stop one of the two servers; or, where both folders are to stay, write another id into node.json of the copy",
        );
    }
  }

  async #register(): Promise<boolean> {
    const { store, identity, session, folder, lostAfterMs } = this.#options;
    const heardMs = this.#alone ? null : lostAfterMs;
    this.#holds = await store.nodes.register({ id: identity.id, session, folder }, this.#facts(), heardMs);
    return this.#holds;
  }

  async #beat(): Promise<void> {
    const { store, log, identity, session, folder } = this.#options;
    try {
      const held = this.#holds;
      // A node that was removed while it was away is entered again.
      this.#holds =
        (await store.nodes.beat({ id: identity.id, session, folder }, this.#facts())) || (await this.#register());
      if (held && !this.#holds)
        log.error(
          { node: identity.id },
          "another server took the identity of this node; this one leaves workloads alone",
        );
      await this.refresh();
      this.#heard();
    } catch (error) {
      this.#surelySince = null;
      log.warn({ err: error }, "the heartbeat of this node failed, trying again");
    }
  }

  #heard(): void {
    const { lostAfterMs, monotonicMs } = this.#options;
    const now = monotonicMs();
    // After a pause of this process or of the database, the others get the time to be heard of again.
    if (now - this.#lastBeat > lostAfterMs / 2) this.#surelySince = now;
    this.#surelySince ??= now;
    this.#lastBeat = now;
  }

  #facts(): NodeFacts {
    const { identity, facts } = this.#options;
    return { ...facts(), name: identity.name, address: this.#address };
  }
}

/** What listeners care for. */
const shape = (list: readonly NodeInfo[]): string =>
  JSON.stringify(list.map(({ id, name, address, drained, live }) => [id, name, address, drained, live]));
