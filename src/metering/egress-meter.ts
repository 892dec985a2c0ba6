/**
 * Meters outgoing bytes of workloads. Where a workload has its own network, its counter is read every few seconds; the
 * platform reports bytes that it forwards. Before usage is counted, the counter positions and the events to count are
 * stored: after a crash the same events are counted again, under the same keys, and add nothing.
 */

import type { Running } from "../lib/lifecycle.ts";
import { type Clock, DAY_MS, SECOND_MS } from "../lib/time/clock.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Store } from "../store/store.ts";
import type { DimensionName } from "./dimensions.ts";
import type { Meter, MeteredResource } from "./meter.ts";

const LOOK_EVERY_MS = 5 * SECOND_MS;
/** How long counter positions are stored. A server that was away for longer starts at zero. */
const KEEP_MS = 30 * DAY_MS;
const KB = 1024;

const DIMENSION: Record<string, DimensionName> = {
  sandbox: "sandbox_egress_gb",
  agent: "agent_egress_gb",
  job: "job_egress_gb",
  function: "mcp_server_egress_gb",
};

export interface Traffic {
  /** Bytes sent through the workload's own network since its start; null when the workload has ended. */
  sentBytes(uid: string): Promise<number | null>;
  /** Bytes forwarded by the platform since the last call, by workload. */
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
  /** Attributes the workload's traffic to the resource from now on. */
  watch(uid: string, resource: Pick<Resource, "kind" | "workspace" | "name" | "uid">): void;
  /** Reads the counters and counts the new bytes. */
  look(): Promise<void>;
}

interface Watched {
  dimension: DimensionName;
  metered: Omit<MeteredResource, "accountId">;
  /** Reported bytes that are not counted yet: less than 1 KB after a look. */
  rest: number;
  /** The workload had ended at the last look. It is watched once more: closing connections report their bytes late. */
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
  /** The last read counter value of each workload, in bytes. */
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

  /** The event for a workload's whole KBs; null when there are none or its account is gone. */
  async function due(uid: string, readTo: number, { dimension, metered, rest }: Watched): Promise<Pending | null> {
    const kb = Math.floor(rest / KB);
    const accountId = kb > 0 ? (await store.workspaces.get(metered.workspace))?.accountId : undefined;
    if (accountId === undefined) return null;
    sequence += 1;
    const atMs = clock.now();
    return { dimension, metered: { ...metered, accountId }, kb, key: `egress-${uid}-${readTo}-${sequence}`, atMs };
  }

  async function look(): Promise<void> {
    // Events that could not be counted last time come first.
    await count();
    const forwarded = traffic.takeForwarded();
    const now: Kept = { read: {}, pending: [] };
    // All at once: the machine reads the counters of all workloads together.
    const looks = await Promise.all(
      [...watched].map(async ([uid, one]) => ({ uid, one, sent: await traffic.sentBytes(uid) })),
    );
    for (const { uid, one, sent } of looks) {
      const before = read[uid] ?? 0;
      // A counter that went back was reset: the workload restarted.
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
      turn = next.catch(() => {}); // the caller of `look` gets the error
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
