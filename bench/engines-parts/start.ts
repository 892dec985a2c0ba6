/** Starts workloads with a driver and counts the time until a client has the end of their first command. */
import type { Driver } from "../../src/node/driver.ts";
import type { WorkloadSpec } from "../../src/node/workload.ts";
import { run } from "../../test/local/run.ts";
import { percentiles } from "../measure.ts";

export interface Measured {
  name: string;
  /** Name of the measurement that this one is compared with. */
  against?: string;
  createMs: number;
  execMs: number;
}

export interface NotMeasured {
  name: string;
  reason: string;
}

export type Findings = (Measured | NotMeasured)[];

export const isMeasured = (each: Measured | NotMeasured): each is Measured => "createMs" in each;

const ROUNDS = 9;
const EXECS_EACH = 5;
/** Limits that fit every engine: a cluster reserves what a workload may use. */
const LIMITS = { memoryMb: 256, cpus: 0.2 };
/** Creates that found no prepared workload are not counted; a pool that never fills is no pool. */
const MISSES_MAX = 200;

export interface DriverRun {
  name: string;
  against: string;
  driver: Driver;
  /** Counts only workloads of the pool. */
  pooled?: boolean;
}

let count = 0;

export async function measureDriver({ name, against, driver, pooled = false }: DriverRun): Promise<Measured> {
  const creates: number[] = [];
  const execs: number[] = [];
  for (let misses = 0; creates.length < ROUNDS; ) {
    const spec: WorkloadSpec = {
      ...{ uid: `bench-${process.pid}-${count++}`, name: "bench", image: "base-image", env: {}, network: "closed" },
      limits: LIMITS,
    };
    const begun = performance.now();
    try {
      const made = await driver.create(spec);
      await run(made, "true");
      const createMs = performance.now() - begun;
      if (pooled && !made.pooled) {
        misses += 1;
        if (misses > MISSES_MAX) throw new Error("the pool of the driver stays empty");
        continue;
      }
      creates.push(createMs);
      for (let n = 0; n < EXECS_EACH; n += 1) execs.push(await timed(() => run(made, "true")));
    } finally {
      await driver.destroy(spec.uid);
    }
  }
  return { name, against, createMs: percentiles(creates).p50Ms, execMs: percentiles(execs).p50Ms };
}

/** What people use without Berth: a command of a command line for each of both. */
export interface CommandRun {
  name: string;
  /** Runs `true` in a new container, and removes it. */
  create(): Promise<unknown>;
  /** Runs `true` in a container that is there. */
  exec(): Promise<unknown>;
}

export async function measureCommands({ name, create, exec }: CommandRun): Promise<Measured> {
  const times: Record<"creates" | "execs", number[]> = { creates: [], execs: [] };
  for (let n = 0; n < ROUNDS; n += 1) {
    times.creates.push(await timed(create));
    times.execs.push(await timed(exec));
  }
  return { name, createMs: percentiles(times.creates).p50Ms, execMs: percentiles(times.execs).p50Ms };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}
