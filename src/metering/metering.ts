/**
 * Starts all metering, for the composition root: a meter for workloads that run on this node, and one for resources
 * that are billed for existing, which one server of the platform runs at a time.
 */

import { type Running, Stack } from "../lib/lifecycle.ts";
import type { Clock } from "../lib/time/clock.ts";
import { MINUTE_MS, SECOND_MS } from "../lib/time/clock.ts";
import type { Lease } from "../store/leases.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Store } from "../store/store.ts";
import { type EgressMeter, startEgressMeter, type Traffic } from "./egress-meter.ts";
import { FLUSH_MAX_MS, Meter } from "./meter.ts";
import type { PriceBook } from "./price-book.ts";
import {
  instancesOf,
  KEPT_KINDS,
  keptRates,
  type Rates,
  RUNNING_KINDS,
  runningRates,
  type Stored,
  storedOf,
} from "./resource-rates.ts";
import { type Observation, type Sight, startUsageObserver } from "./usage-observer.ts";

/** Node name of the meter for existing resources, whichever server runs it. */
const PLATFORM_NODE = "platform";
/**
 * Lease of the server that meters existing resources. After its loss, metering is late by this much; nothing is lost.
 */
const KEEPER_LEASE_MS = 30 * SECOND_MS;
const KEEPER_TRY_MS = 10 * SECOND_MS;
/** How often drives are measured. Rarely, because it reads every file of a drive. */
const DRIVE_LOOK_MS = 5 * MINUTE_MS;
const CHANGING_KINDS = ["customdomain", "drive"];

export interface MeteringOptions {
  store: Store;
  book: PriceBook;
  clock: Clock;
  /** See MeterDependencies. */
  monotonicMs(): number;
  /** This server's name: unique among servers and the same after a restart. */
  node: string;
  /** Distinguishes this server from others on the same database. */
  holder: string;
  /** When a workload on this machine started; null when it is not running here. */
  runningSince(uid: string): Promise<number | null>;
  /** Size in MB of an image, snapshot or drive on this machine; null when it does not exist. */
  storedMb(stored: Stored, owner: Resource): Promise<number | null>;
  /** Outgoing traffic of this machine's workloads. */
  traffic: Traffic;
  onError(error: unknown): void;
}

export interface Metering extends Running {
  /** This node's meter, for code that starts, stops and counts things itself. */
  meter: Meter;
  egress: EgressMeter;
}

export async function startMetering(options: MeteringOptions): Promise<Metering> {
  const { store, node, onError } = options;
  const stack = new Stack();
  try {
    const meter = stack.add(await startMeter(options, node));
    const egress = stack.add(await startEgressMeter({ ...options, meter }));
    stack.add(
      await startUsageObserver({
        store,
        meter,
        kinds: RUNNING_KINDS,
        alone: true, // on this node
        observe: (resource, sight) => observeRunning({ ...options, egress }, resource, sight),
        onError,
      }),
    );
    // SQLite has one server, which needs no election.
    stack.add(store.database.dialect === "sqlite" ? await startKeeping(options) : keepWhileLeading(options));
    return { meter, egress, stop: () => stack.stop() };
  } catch (error) {
    await stack.stop();
    throw error;
  }
}

/**
 * Meters the replicas that run on this machine, from their actual start: other servers meter their own replicas, and an
 * old record may name replicas that the machine has lost since.
 */
async function observeRunning(
  { runningSince, egress }: MeteringOptions & Pick<Metering, "egress">,
  resource: Resource,
  sight: Sight,
): Promise<Observation> {
  const instances = instancesOf(resource);
  const since = await Promise.all(instances.map(({ uid }) => runningSince(uid)));
  const here = instances.filter((_, index) => since[index] !== null);
  for (const { uid } of here) egress.watch(uid, resource);
  const rates = runningRates(resource, here);
  if (sight === "again") return { rates, ...sinceResize(resource, rates) };
  if (here.length === 0) return { rates };
  return { rates, atMs: Math.min(...since.filter((ms) => ms !== null)), resume: sight === "found" };
}

interface Resized {
  resized?: { atMs: number; memory: number };
}

/** A sandbox that was resized is billed by its new memory from that moment, however late the change is noticed. */
function sinceResize({ state }: { state: Resized }, rates: Rates): Pick<Observation, "atMs"> {
  const { resized } = state;
  return resized && Object.values(rates).includes(resized.memory) ? { atMs: resized.atMs } : {};
}

/** Tries to acquire the lease for metering existing resources, and meters them while it holds the lease. */
function keepWhileLeading(options: MeteringOptions): Running {
  const { store, holder, onError } = options;
  let lease: Lease | null = null;
  let keeping: Running | null = null;
  let turn = Promise.resolve();
  const attempt = async (): Promise<void> => {
    lease = await store.leases.acquire("usage-keeper", holder, KEEPER_LEASE_MS);
    if (lease) {
      keeping ??= await startKeeping(options);
      return;
    }
    const ended = keeping;
    keeping = null;
    await ended?.stop();
  };
  const next = (): void => {
    turn = turn.then(attempt).catch(onError);
  };
  const timer = setInterval(next, KEEPER_TRY_MS).unref();
  next();
  return {
    async stop() {
      clearInterval(timer);
      await turn;
      await keeping?.stop();
      if (lease) await store.leases.release(lease);
    },
  };
}

async function startKeeping(options: MeteringOptions): Promise<Running> {
  const { store, storedMb, onError } = options;
  const stack = new Stack();
  try {
    const meter = stack.add(await startMeter(options, PLATFORM_NODE));
    stack.add(
      await startUsageObserver({
        store,
        meter,
        kinds: KEPT_KINDS,
        alone: store.database.dialect === "sqlite",
        grows: { kind: "drive", lookEveryMs: DRIVE_LOOK_MS },
        observe: async (resource, sight) => {
          const stored = storedOf(resource);
          const rates = keptRates(resource, stored === null ? null : await storedMb(stored, resource));
          if (sight === "again") return { rates };
          // Most sizes are fixed at creation; the size of a drive and the verification of a domain change later.
          return CHANGING_KINDS.includes(resource.kind) ? { rates, resume: true } : { rates, atMs: resource.createdAt };
        },
        onError,
      }),
    );
    return stack;
  } catch (error) {
    await stack.stop();
    throw error;
  }
}

const startMeter = ({ store, book, clock, monotonicMs, onError }: MeteringOptions, node: string): Promise<Meter> =>
  Meter.start({
    ledger: store.usage,
    book,
    clock,
    monotonicMs,
    node,
    flushMs: FLUSH_MAX_MS,
    onError,
  });
