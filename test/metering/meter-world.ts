/**
 * A small world to meter: resources that run at some rate, a clock that can be set, a machine that can sleep, and a
 * server that can die at any write. The world keeps its own account of what was really used.
 */
import { hourOf } from "../../src/lib/time/utc-calendar.ts";
import type { DimensionName } from "../../src/metering/dimensions.ts";
import { Meter, type MeteredResource } from "../../src/metering/meter.ts";
import { createPriceBook } from "../../src/metering/price-book.ts";
import type { UsageLedger } from "../../src/store/usage/port.ts";

export const DIMENSION: DimensionName = "sandbox_compute_runtime_gbs";
export const COUNTED: DimensionName = "agent_async_requests_count";
const book = createPriceBook();

export class ServerDied extends Error {}

interface Thing {
  resource: MeteredResource;
  rate: number;
  startedMs: number;
  /** The end of its last run, as its supervisor wrote it down, with the run that ended. */
  ended: { rate: number; startedMs: number; endedMs: number } | null;
}

export class MeterWorld {
  readonly ledger: UsageLedger;
  readonly used = new Map<string, bigint>();
  wallMs: number;
  monotonicMs = 5_000_000;
  counted = 0;
  /** How many writes succeed before the server dies, and whether the last one still reaches the disk. */
  fuse: { writes: number; lastOneLands: boolean } | null = null;
  /** A failing database that the server survives. */
  refusals: { lands: boolean }[] = [];
  #meter: Meter | null = null;
  #death = someDeath();
  #life = { dead: false };
  readonly #node: string;
  readonly #things: Thing[];
  readonly #counts: { key: string; atMs: number }[] = [];

  constructor(ledger: UsageLedger, startMs: number, { node = "node-1", size = 3 } = {}) {
    this.ledger = ledger;
    this.#node = node;
    this.wallMs = startMs;
    this.#things = Array.from({ length: size }, (_, index) => ({
      resource: { accountId: "acc", workspace: "default", name: `thing-${index}`, uuid: `uuid-${index}` },
      rate: 0,
      startedMs: 0,
      ended: null,
    }));
  }

  /** Time passes; what runs is used, by the clock that cannot be set. */
  pass(ms: number): void {
    for (const { resource, rate } of this.#things) {
      this.used.set(resource.uuid, (this.used.get(resource.uuid) ?? 0n) + BigInt(rate) * BigInt(ms));
    }
    this.wallMs += ms;
    this.monotonicMs += ms;
  }

  /** The clock is set (or the machine sleeps, which looks the same); supervisors keep their starts in step with it. */
  setClock(byMs: number): void {
    this.wallMs += byMs;
    for (const thing of this.#things) thing.startedMs += byMs;
  }

  async change(index: number, rate: number): Promise<void> {
    const thing = this.#things[index % this.#things.length];
    if (!thing || thing.rate === rate) return;
    if (thing.rate > 0) thing.ended = { rate: thing.rate, startedMs: thing.startedMs, endedMs: this.wallMs };
    thing.rate = rate;
    thing.startedMs = this.wallMs;
    await this.#serve(async (meter) => meter.setRate(thing.resource, DIMENSION, rate, { atMs: this.wallMs }));
  }

  /** A request, told to the meter as often as it takes. */
  async request(): Promise<void> {
    this.counted += 1;
    this.#counts.push({ key: `request-${this.counted}`, atMs: this.wallMs });
    await this.#serve(async (meter) => this.#retellCounts(meter));
  }

  async flush(): Promise<void> {
    await this.#serve(async (meter) => meter.flush().catch((error) => this.#survive(error)));
  }

  /** What the ledger says was used: the events, and what runs as far as it was vouched for. */
  async metered(): Promise<Map<string, bigint>> {
    await this.flush();
    const answer = await this.ledger.ask({
      accountId: "acc",
      workspaces: "all",
      filter: {},
      columns: ["resourceUuid", "dimension"],
      startMs: 0,
      endMs: this.wallMs * 2,
      totalParts: [{ from: "rollup", grain: "hour", startHour: 0, endHour: hourOf(this.wallMs * 2) }],
      bucketParts: [],
      bucketHours: 1,
      bucketShiftHours: 0,
      limit: 1000,
      after: null,
      rateOf: () => ({ numerator: 0n, denominator: 1n }),
      dimensions: [],
    });
    return new Map(answer.groups.map(({ key, quantity }) => [`${key.resourceUuid} ${key.dimension}`, quantity]));
  }

  /** What is left of a dead server stops at its next breath: nothing it does reaches the disk. */
  async end(): Promise<void> {
    this.#life.dead = true;
    this.#life = { dead: false };
    await this.#meter?.stop().catch(() => undefined);
    this.#meter = null;
  }

  async #serve(act: (meter: Meter) => Promise<void>): Promise<void> {
    try {
      const meter = await this.#running();
      const refused = this.refusals.length > 0;
      const acted = act(meter);
      // What was refused is tried again with the next flush; the world does not wait for the timer.
      if (refused) await meter.flush().catch(() => meter.flush());
      await Promise.race([acted, this.#death.promise]);
    } catch (error) {
      if (!(error instanceof ServerDied)) throw error;
      this.fuse = null;
      await this.end();
      this.#death = someDeath();
      // The next server observes the world as it stands, and repeats what may or may not have been heard.
      await this.#serve(async (meter) => this.#observeAll(meter));
    }
  }

  /** A server outlives a database that did not answer, and tries again. */
  #survive(error: unknown): void {
    if (error instanceof ServerDied) throw error;
  }

  async #observeAll(meter: Meter): Promise<void> {
    for (const { resource, rate, startedMs, ended } of this.#things) {
      if (ended) {
        await meter.ran(resource, DIMENSION, ended.rate, { fromMs: ended.startedMs, untilMs: ended.endedMs });
      }
      if (rate > 0) await meter.setRate(resource, DIMENSION, rate, { atMs: startedMs });
    }
    await this.#retellCounts(meter);
  }

  async #retellCounts(meter: Meter): Promise<void> {
    const resource = { accountId: "acc", workspace: "default", name: "agent", uuid: "agent" };
    await Promise.all(this.#counts.slice(-3).map((count) => meter.count(resource, COUNTED, 1, count)));
  }

  async #running(): Promise<Meter> {
    this.#meter ??= await this.#start().catch((error) => {
      this.#survive(error);
      return this.#start();
    });
    return this.#meter;
  }

  #start(): Promise<Meter> {
    return Meter.start({
      ledger: this.#failing(),
      book,
      clock: { now: () => this.wallMs },
      monotonicMs: () => this.monotonicMs,
      node: this.#node,
      flushMs: 5000,
      onError: () => undefined,
    });
  }

  #failing(): Pick<UsageLedger, "record" | "meterState" | "seriesState"> {
    const { ledger } = this;
    const life = this.#life;
    return {
      meterState: (node) => ledger.meterState(node),
      seriesState: (node, series) => ledger.seriesState(node, series),
      record: async (change, rateOf) => {
        if (life.dead) throw new ServerDied();
        if (this.fuse && this.fuse.writes-- <= 0) {
          if (this.fuse.lastOneLands) await ledger.record(change, rateOf);
          this.#death.reject(new ServerDied());
          throw new ServerDied();
        }
        const refusal = this.refusals.shift();
        if (refusal?.lands !== false) await ledger.record(change, rateOf);
        if (refusal) throw new Error("the database did not answer");
      },
    };
  }
}

/** A server may die while nobody asks it for anything. */
function someDeath(): PromiseWithResolvers<never> {
  const death = Promise.withResolvers<never>();
  death.promise.catch(() => undefined);
  return death;
}
