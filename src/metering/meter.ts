/**
 * The meter of one node. It is told what runs and what happened, and keeps the ledger true to it:
 *
 *   await meter.setRate(resource, "sandbox_compute_runtime_gbs", 4096);                 // 4096 MB from now on
 *   await meter.setRate(resource, "sandbox_compute_runtime_gbs", 0, { atMs: exitedAt }); // standby or gone
 *   await meter.count(agent, "agent_async_requests_count", 1, { key: requestId, atMs });
 *
 * A returned promise means it is on disk. Saying the same again changes nothing, so whoever observes the world may
 * repeat itself, above all after a restart (`atMs` is then when the thing really started).
 */
import { PlatformError } from "../contract/errors.ts";
import type { Running } from "../lib/lifecycle.ts";
import { type Clock, SECOND_MS } from "../lib/time/clock.ts";
import type { SeriesState, UsageChange, UsageLedger, UsageSeries } from "../store/usage/port.ts";
import { seriesKey } from "../store/usage/series.ts";
import { DIMENSIONS, type DimensionName } from "./dimensions.ts";
import {
  BACKDATE_MAX_MS,
  type ClockReading,
  type MeterCommand,
  type MeterMemory,
  planFlush,
  planResume,
  RATE_MAX,
} from "./meter-plan.ts";
import { type PriceBook, rateOf } from "./price-book.ts";

/** Longest time between flushes, in milliseconds, and so the most usage that a crash can lose. */
export const FLUSH_MAX_MS = 5 * SECOND_MS;
/** Most commands planned per flush. */
const COMMANDS_PER_FLUSH = 1000;
/** Most commands (rates and single counts) that wait while the database does not answer. */
const WAITING_MAX = 100_000;
/** Largest count, in base units: an overflow of the 64-bit sums would block all metering. */
const COUNT_MAX = 1e12;
/** Longest key: a UUID or a request id, with room to spare. */
const KEY_LENGTH_MAX = 128;
const NAME_LENGTH_MAX = 256;

export interface MeteredResource {
  accountId: string;
  workspace: string;
  name: string;
  uuid: string;
  /** The key or person that caused the usage, where that is recorded. */
  subject?: string;
}

export interface Count {
  dimension: DimensionName;
  quantity: number;
  key: string;
  atMs: number;
}

export interface MeterDependencies {
  ledger: Pick<UsageLedger, "record" | "meterState" | "seriesState">;
  book: PriceBook;
  clock: Clock;
  /** A monotonic clock in milliseconds; it may stand still while the machine sleeps. */
  monotonicMs: () => number;
  node: string;
  flushMs: number;
  /** Called when a flush fails; the next flush tries again. */
  onError: (error: unknown) => void;
}

interface Waiting {
  command: MeterCommand;
  resolve(): void;
  reject(error: unknown): void;
}

/** What the keys of counted events begin with; spans have others. */
export const COUNT_KEY = "count-";

export class Meter implements Running {
  readonly #deps: MeterDependencies;
  readonly #memory: MeterMemory;
  #waiting: Waiting[] = [];
  #weight = 0;
  /** Planned changes that are not durable yet, in order; the first one is retried until it is. */
  #outbox: UsageChange[] = [];
  /** Callers that wait for the outbox to empty. */
  #inFlight: Waiting[] = [];
  #flushing: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #stopped = false;

  static async start(deps: MeterDependencies): Promise<Meter> {
    const resumable = new Set<string>();
    for (;;) {
      const state = await deps.ledger.meterState(deps.node);
      const { memory, changes } = planResume(deps.node, state, readClocks(deps), resumable);
      for (const change of changes) await deps.ledger.record(change, rateOf(deps.book));
      // A killed server's last writes may reach the database after its end: repeat until no open span is found.
      if (!state || state.spans.length === 0) return new Meter(deps, memory);
    }
  }

  private constructor(deps: MeterDependencies, memory: MeterMemory) {
    this.#deps = deps;
    this.#memory = memory;
    this.#timer = setInterval(() => this.#flushLater(), Math.min(deps.flushMs, FLUSH_MAX_MS)).unref();
  }

  /**
   * From `atMs` (default: now) on, the resource uses `rate` base units (MB, or 1 for hours) per millisecond. `resume`
   * is for the first look after a start: a span of the previous process continues without a gap, but not from before
   * `atMs`; any other span begins now.
   */
  async setRate(
    resource: MeteredResource,
    dimension: DimensionName,
    rate: number,
    { atMs = this.#deps.clock.now(), resume = false }: { atMs?: number; resume?: boolean } = {},
  ): Promise<void> {
    assertRate(rate, atMs);
    return this.#enqueue({ do: "rate", series: seriesOf(resource, dimension), ratePerMs: rate, atMs, resume });
  }

  /**
   * The resource used `rate` from `fromMs` to `untilMs` and has ended: for usage that ended while no meter ran. The
   * part that was already metered is not metered again.
   */
  async ran(
    resource: MeteredResource,
    dimension: DimensionName,
    rate: number,
    { fromMs, untilMs }: { fromMs: number; untilMs: number },
  ): Promise<void> {
    assertRate(rate, fromMs, untilMs);
    return this.#enqueue({ do: "ran", series: seriesOf(resource, dimension), ratePerMs: rate, fromMs, untilMs });
  }

  /** Counts `quantity` base units at `atMs`. Dimension, resource, `key` and `atMs` identify the event. */
  async count(
    resource: MeteredResource,
    dimension: DimensionName,
    quantity: number,
    { key, atMs }: { key: string; atMs: number },
  ): Promise<void> {
    return this.countAll(resource, [{ dimension, quantity, key, atMs }]);
  }

  /** Like `count`, for many counts of one resource in one commit or a few. */
  async countAll(resource: MeteredResource, counts: readonly Count[]): Promise<void> {
    const nowMs = this.#deps.clock.now();
    const allSeries = new Map<DimensionName, UsageSeries>();
    const events = counts.map(({ dimension, quantity, key, atMs }) => {
      assertCount(quantity, key, atMs, nowMs);
      const series = allSeries.get(dimension) ?? seriesOf(resource, dimension);
      allSeries.set(dimension, series);
      return { series, startMs: atMs, endMs: atMs, quantity, key: `${COUNT_KEY}${key}` };
    });
    return this.#enqueue({ do: "count", events });
  }

  /** Makes all usage up to now durable. */
  flush(): Promise<void> {
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = null;
      if (this.#waiting.length > 0 && this.#outbox.length === 0 && !this.#stopped) this.#flushLater();
    });
    return this.#flushing;
  }

  /** Flushes up to now. Spans stay open: workloads may outlive this process. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    if (this.#timer) clearInterval(this.#timer);
    await this.#flushing?.catch(() => undefined); // reported where it failed
    try {
      do await this.#flush();
      while (this.#waiting.length > 0);
    } catch (error) {
      for (const { reject } of [...this.#inFlight, ...this.#waiting]) reject(error);
      throw error;
    }
  }

  #enqueue(command: MeterCommand): Promise<void> {
    if (this.#stopped || this.#weight >= WAITING_MAX) {
      throw new PlatformError("unavailable", "Usage cannot be recorded at the moment. Try again shortly.");
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push({ command, resolve, reject });
    this.#weight += weightOf(command);
    // While the database fails, the timer sets the pace of the retries.
    if (!this.#flushing && this.#outbox.length === 0) this.#flushLater();
    return promise;
  }

  #flushLater(): void {
    this.flush().catch(this.#deps.onError);
  }

  async #flush(): Promise<void> {
    await this.#emptyOutbox();
    const batch = this.#waiting.slice(0, COMMANDS_PER_FLUSH);
    // Read the clocks together with the batch: a later command has a later time, and is not covered before it is known.
    const reading = readClocks(this.#deps);
    const states = await this.#lookUp(batch);
    this.#waiting.splice(0, batch.length);
    for (const { command } of batch) this.#weight -= weightOf(command);
    this.#inFlight = batch;
    const commands = batch.map(({ command }) => command);
    this.#outbox = planFlush(this.#memory, commands, states, reading, rateOf(this.#deps.book));
    await this.#emptyOutbox();
  }

  async #emptyOutbox(): Promise<void> {
    const { ledger, book } = this.#deps;
    for (let change = this.#outbox[0]; change; change = this.#outbox[0]) {
      await ledger.record(change, rateOf(book));
      this.#outbox.shift();
    }
    for (const { resolve } of this.#inFlight.splice(0)) resolve();
  }

  /** Reads the ledger's state of the series that are about to begin. */
  async #lookUp(batch: readonly Waiting[]): Promise<Map<string, SeriesState>> {
    const beginning = new Map<string, UsageSeries>();
    for (const { command } of batch) {
      if (command.do === "count" || command.ratePerMs === 0) continue;
      const key = seriesKey(command.series);
      if (!this.#memory.spans.has(key)) beginning.set(key, command.series);
    }
    const states = await this.#deps.ledger.seriesState(this.#deps.node, [...beginning.values()]);
    return new Map([...beginning.keys()].flatMap((key, index) => (states[index] ? [[key, states[index]]] : [])));
  }
}

/** Refuses a count that the ledger could never store, because it would block all that follow. */
function assertCount(quantity: number, key: string, atMs: number, nowMs: number): void {
  if (!Number.isSafeInteger(quantity) || quantity < 0 || quantity > COUNT_MAX)
    throw new RangeError(`not a quantity: ${quantity}`);
  if (!Number.isSafeInteger(atMs) || Math.abs(nowMs - atMs) > BACKDATE_MAX_MS) {
    throw new PlatformError("invalid_field", "Usage is recorded for the last 31 days only.");
  }
  if (key.length > KEY_LENGTH_MAX || key.includes("\0")) throw new RangeError("not a key for an event");
}

function assertRate(rate: number, ...timesMs: number[]): void {
  if (!Number.isInteger(rate) || rate < 0 || rate > RATE_MAX) throw new RangeError(`not a rate: ${rate}`);
  if (!timesMs.every(Number.isSafeInteger)) throw new RangeError(`not a time: ${timesMs.join(", ")}`);
}

const weightOf = (command: MeterCommand): number => (command.do === "count" ? command.events.length : 1);

const readClocks = ({ clock, monotonicMs }: Pick<MeterDependencies, "clock" | "monotonicMs">): ClockReading => ({
  wallMs: clock.now(),
  // The ledger counts whole milliseconds; a monotonic clock may return fractions.
  monotonicMs: Math.floor(monotonicMs()),
});

function seriesOf(
  { accountId, workspace, name, uuid, subject = "" }: MeteredResource,
  dimension: DimensionName,
): UsageSeries {
  const texts = [accountId, workspace, name, uuid, subject];
  if (texts.some((text) => text.length > NAME_LENGTH_MAX || text.includes("\0"))) {
    throw new RangeError("not a resource that can be metered");
  }
  const { resourceType } = DIMENSIONS[dimension];
  const series = { accountId, workspace, resourceType, resourceName: name, resourceUuid: uuid, dimension };
  return subject === "" ? series : { ...series, subject };
}
