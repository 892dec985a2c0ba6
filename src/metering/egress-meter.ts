/**
 * What workloads send out. Where a workload has a network of its own, its counter is read every few seconds; what goes
 * through the platform is told as it goes. Before it is counted it is written down how far the counters were read and
 * what is to be counted: after a crash the same events are counted again, under the same keys, and add nothing.
 */

import type { Running } from "../lib/lifecycle.ts";
import { type Clock, DAY_MS, SECOND_MS } from "../lib/time/clock.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Store } from "../store/store.ts";
import type { DimensionName } from "./dimensions.ts";
import type { Meter, MeteredResource } from "./meter.ts";

const LOOK_EVERY_MS = 5 * SECOND_MS;
/** A server that was away for longer starts its counters anew. */
const KEEP_MS = 30 * DAY_MS;
const KB = 1024;

const DIMENSION: Record<string, DimensionName> = {
  sandbox: "sandbox_egress_gb",
  agent: "agent_egress_gb",
  job: "job_egress_gb",
  function: "mcp_server_egress_gb",
};

export interface Traffic {
  /** Bytes that left through a network of the workload's own since it began; null when it is over. */
  sentBytes(uid: string): Promise<number | null>;
  /** Bytes that left through the platform since this was last asked, by workload. */
  takeForwarded(): ReadonlyMap<string, number>;
}

export interface EgressMeterOptions {
  store: Pick<Store, "records" | "workspaces">;
  meter: Pick<Meter, "count">;
  clock: Clock;
  node: string;
  traffic: Traffic;
  onError(error: unknown): void;
}

export interface EgressMeter extends Running {
  /** From now on the workload's traffic is the resource's. */
  watch(uid: string, resource: Pick<Resource, "kind" | "workspace" | "name" | "uid">): void;
  /** Counts what there is. */
  look(): Promise<void>;
}

interface Watched {
  dimension: DimensionName;
  metered: Omit<MeteredResource, "accountId">;
  /** Bytes told of and not yet counted: less than a KB after a look. */
  rest: number;
  /** It was over at the last look; what its connections tell when they close comes after that. */
  over: boolean;
}

interface Pending {
  dimension: DimensionName;
  metered: MeteredResource;
  kb: number;
  key: string;
  atMs: number;
}

interface Kept {
  /** How far the counter of each workload was read. */
  read: Record<string, number>;
  pending: Pending[];
}

export async function startEgressMeter(options: EgressMeterOptions): Promise<EgressMeter> {
  const { store, meter, clock, node, traffic, onError } = options;
  const key = `egress/${node}`;
  const watched = new Map<string, Watched>();
  let { read, pending } = keptFrom(await store.records.read(key));
  let sequence = 0;

  const count = async (): Promise<void> => {
    await Promise.all(pending.map(({ metered, dimension, kb, ...at }) => meter.count(metered, dimension, kb, at)));
    pending = [];
  };

  /** What of a workload's bytes makes whole KB; null when its account is gone. */
  async function due(uid: string, readTo: number, { dimension, metered, rest }: Watched): Promise<Pending | null> {
    const kb = Math.floor(rest / KB);
    const accountId = kb > 0 ? (await store.workspaces.get(metered.workspace))?.accountId : undefined;
    if (accountId === undefined) return null;
    sequence += 1;
    const atMs = clock.now();
    return { dimension, metered: { ...metered, accountId }, kb, key: `egress-${uid}-${readTo}-${sequence}`, atMs };
  }

  async function look(): Promise<void> {
    // What could not be counted the last time comes first.
    await count();
    const forwarded = traffic.takeForwarded();
    const now: Kept = { read: {}, pending: [] };
    for (const [uid, one] of [...watched]) {
      const sent = await traffic.sentBytes(uid);
      const before = read[uid] ?? 0;
      // A counter that went back was started anew.
      one.rest += (forwarded.get(uid) ?? 0) + (sent === null ? 0 : sent < before ? sent : sent - before);
      const event = await due(uid, sent ?? 0, one);
      if (event) {
        now.pending.push(event);
        one.rest -= event.kb * KB;
      }
      if (sent !== null) now.read[uid] = sent;
      else if (one.over) watched.delete(uid);
      one.over = sent === null;
    }
    const changed = now.pending.length > 0;
    read = now.read;
    if (!changed) return;
    pending = now.pending;
    await store.records.update(key, clock.now() + KEEP_MS, () => ({ value: JSON.stringify(now), result: undefined }));
    await count();
  }

  await count();
  let turn = Promise.resolve();
  const timer = setInterval(() => {
    turn = turn.then(look).catch(onError);
  }, LOOK_EVERY_MS).unref();
  return {
    watch(uid, { kind, workspace, name, uid: uuid }) {
      const dimension = DIMENSION[kind];
      if (dimension && !watched.has(uid))
        watched.set(uid, { dimension, metered: { workspace, name, uuid }, rest: 0, over: false });
    },
    look: () => {
      const next = turn.then(look);
      turn = next.catch(() => {}); // told to whoever asked for it
      return next;
    },
    async stop() {
      clearInterval(timer);
      await turn.then(look).catch(onError);
    },
  };
}

function keptFrom(text: string | null): Kept {
  return text === null ? { read: {}, pending: [] } : (JSON.parse(text) as Kept);
}
