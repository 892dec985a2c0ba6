/**
 * Metering as a whole, for the composition root: a meter for what runs on this node, and one for what merely exists,
 * which one server of the platform holds at a time.
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
  RUNNING_KINDS,
  runningRates,
  type Stored,
  storedOf,
} from "./resource-rates.ts";
import { type Observation, type Sight, startUsageObserver } from "./usage-observer.ts";

/** The name under which what merely exists is metered, whichever server does it. */
const PLATFORM_NODE = "platform";
/** How long a server that went away keeps others from taking over; nothing is lost meanwhile, it is only late. */
const KEEPER_LEASE_MS = 30 * SECOND_MS;
const KEEPER_TRY_MS = 10 * SECOND_MS;
/** All files of a drive are looked at for its size. */
const DRIVE_LOOK_MS = 5 * MINUTE_MS;
const CHANGING_KINDS = ["customdomain", "drive"];

export interface MeteringOptions {
  store: Store;
  book: PriceBook;
  clock: Clock;
  /** See MeterDependencies. */
  monotonicMs(): number;
  /** This server's name, the same after a restart and no other server's. */
  node: string;
  /** Distinguishes this server from others on the same database. */
  holder: string;
  /** When a workload on this machine began to run; null when it does not, or is not here. */
  runningSince(uid: string): Promise<number | null>;
  /** Size of an image, a snapshot or a drive that is here; null when there is none of that name. */
  storedMb(stored: Stored, owner: Resource): Promise<number | null>;
  /** What the workloads of this machine send out. */
  traffic: Traffic;
  onError(error: unknown): void;
}

export interface Metering extends Running {
  /** Of this node: for whoever starts, stops and counts things itself. */
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
    // A file has one server, and needs no vote.
    stack.add(store.database.dialect === "sqlite" ? await startKeeping(options) : keepWhileLeading(options));
    return { meter, egress, stop: () => stack.stop() };
  } catch (error) {
    await stack.stop();
    throw error;
  }
}

/**
 * Counts what this machine knows of, and not from before it began: other servers have copies of their own, and a record
 * that is older than this server may tell of what the machine has lost since.
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
  if (sight === "again" || here.length === 0) return { rates };
  return { rates, atMs: Math.min(...since.filter((ms) => ms !== null)), resume: sight === "found" };
}

/** Tries to become the server that meters what exists, and does so for as long as it is. */
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
          // A size is fixed when its resource is made; that of a drive, and whether a domain is verified, are not.
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
