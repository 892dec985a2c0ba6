/**
 * Records what each resource uses and is asked for on this node. Requests are counted in memory as they end; every few
 * seconds the running instances are measured and everything is added to the store.
 */
import type { Running } from "../../lib/lifecycle.ts";
import { type Clock, SECOND_MS } from "../../lib/time/clock.ts";
import type { Records } from "../../store/records.ts";
import { addDuration, binOf, emptyMinute, type Minute } from "./minute.ts";
import { addToHour } from "./stored-hours.ts";

const LOOK_EVERY_MS = 15 * SECOND_MS;
/** Resources that are recorded between two looks. Beyond it newcomers are left out: memory stays bounded. */
const RESOURCES_MAX = 20_000;
/** Records that are written at the same time: they share a commit. */
const WRITES_AT_ONCE = 64;

/** A running instance on this node. */
export interface RunningInstance {
  uid: string;
  /** Uid of the resource that it belongs to. */
  owner: string;
  cpuMs: number;
  memoryBytes: number;
  diskBytes?: number | undefined;
}

export interface EndedRequest {
  durationMs: number;
  isError: boolean;
  /** It waited for a start or a thaw. */
  isCold: boolean;
}

export interface ResourceMetrics extends Running {
  /** Counts a request that has ended; called for every request, so it only touches memory. */
  ended(owner: string, request: EndedRequest): void;
  /** Measures the instances and stores what was observed since the last look. */
  look(): Promise<void>;
}

export interface RecorderOptions {
  records: Records;
  clock: Clock;
  /** Never goes back, unlike the clock. */
  monotonicMs(): number;
  node: string;
  /** The instances that run on this node now; frozen ones are left out. */
  running(): Promise<RunningInstance[]>;
  onError(error: unknown): void;
}

export function startResourceMetrics(options: RecorderOptions): ResourceMetrics {
  const { records, clock, monotonicMs, node, running, onError } = options;
  let observed = new Map<string, Minute>();
  let measured = new Map<string, { cpuMs: number; atMs: number }>();

  const minuteOf = (owner: string): Minute | null => {
    const known = observed.get(owner);
    if (known !== undefined) return known;
    if (observed.size >= RESOURCES_MAX) return null;
    const minute = emptyMinute();
    observed.set(owner, minute);
    return minute;
  };

  async function measure(): Promise<void> {
    const instances = await running();
    const atMs = monotonicMs();
    const now: typeof measured = new Map();
    const memory = new Map<string, number>();
    const disk = new Map<string, number>();
    const spans = new Map<string, number>();
    for (const { uid, owner, cpuMs, memoryBytes, diskBytes } of instances) {
      const before = measured.get(uid);
      now.set(uid, { cpuMs, atMs });
      memory.set(owner, (memory.get(owner) ?? 0) + memoryBytes);
      if (diskBytes !== undefined) disk.set(owner, (disk.get(owner) ?? 0) + diskBytes);
      const minute = minuteOf(owner);
      // The first look at an instance only tells where its counter stands.
      if (before === undefined || minute === null) continue;
      // A counter that went back was reset: the instance started again.
      minute.cpuMs += cpuMs < before.cpuMs ? cpuMs : cpuMs - before.cpuMs;
      spans.set(owner, Math.max(spans.get(owner) ?? 0, atMs - before.atMs));
    }
    for (const [owner, bytes] of memory) {
      const minute = minuteOf(owner);
      if (minute === null) continue;
      minute.memoryBytes = Math.max(minute.memoryBytes, bytes);
      const diskBytes = disk.get(owner);
      if (diskBytes !== undefined) minute.diskBytes = Math.max(minute.diskBytes ?? 0, diskBytes);
      minute.measuredMs += spans.get(owner) ?? 0;
    }
    measured = now;
  }

  async function look(): Promise<void> {
    await measure().catch(onError); // requests are stored all the same
    const atMs = clock.now();
    const taken = [...observed];
    observed = new Map();
    for (let at = 0; at < taken.length; at += WRITES_AT_ONCE)
      await Promise.all(
        taken
          .slice(at, at + WRITES_AT_ONCE)
          .map(([owner, minute]) => addToHour(records, node, owner, atMs, rounded(minute))),
      );
  }

  let turn = Promise.resolve();
  const next = (): Promise<void> => {
    const looked = turn.then(look);
    turn = looked.catch(onError);
    return looked;
  };
  const timer = setInterval(() => void next().catch(() => {}), LOOK_EVERY_MS).unref(); // `turn` tells of the error
  return {
    ended(owner, { durationMs, isError, isCold }) {
      const minute = minuteOf(owner);
      if (minute === null) return;
      minute.requests += 1;
      if (isError) minute.errors += 1;
      if (isCold) minute.coldStarts += 1;
      addDuration(minute, binOf(durationMs));
    },
    look: next,
    async stop() {
      clearInterval(timer);
      await next().catch(onError);
    },
  };
}

/** Whole numbers: the stored text is a third of the length. */
const rounded = (minute: Minute): Minute => ({
  ...minute,
  cpuMs: Math.round(minute.cpuMs),
  measuredMs: Math.round(minute.measuredMs),
});
