/**
 * The decisions of a meter, as pure functions. Running spans are kept open in the ledger, where they count up to the
 * time that their node has last reported ("covered"), so one small write every few seconds keeps any number of them
 * current. A span becomes an event when it ends, when its rate changes, and at every full hour. Elapsed time comes from
 * the monotonic clock, timestamps from the wall clock. Where the two diverge (the clock was set, the machine slept),
 * every span is settled with the time that really passed and continues at the new wall time.
 */
import { DAY_MS, HOUR_MS } from "../lib/time/clock.ts";
import { hourMs, hourOf } from "../lib/time/utc-calendar.ts";
import type {
  MeterState,
  RateOf,
  SeriesState,
  UsageChange,
  UsageEvent,
  UsageSeries,
  UsageSpan,
} from "../store/usage/port.ts";
import { hourPieces, splitAtHours } from "../store/usage/rollup.ts";
import { seriesKey } from "../store/usage/series.ts";

/** A difference between the clocks beyond drift and late timers counts as a step of the wall clock. */
const STEP_MIN_MS = 1000;
const DRIFT_RATIO = 0.001;
/** Earliest accepted start before now. An older start means a broken clock, not a long outage. */
export const BACKDATE_MAX_MS = 31 * DAY_MS;
/** Limits per transaction, so that a commit takes about ten milliseconds; one span may bring the hours of a month. */
const SPANS_PER_CHANGE = 500;
const EVENTS_PER_CHANGE = 1000;
/** A node that has not reported for this long is gone; another node settles its spans. */
const SILENT_MAX_MS = 60_000;

export interface ClockReading {
  wallMs: number;
  monotonicMs: number;
}

/**
 * From `atMs` on, `series` uses `ratePerMs` base units per millisecond; 0 ends it. With `resume`, a span that the
 * previous server process had open continues from where that process left it; otherwise the span begins now.
 */
export interface RateCommand {
  do: "rate";
  series: UsageSeries;
  ratePerMs: number;
  atMs: number;
  resume: boolean;
}

/** `series` used `ratePerMs` in [fromMs, untilMs) and has ended; the part that was already metered is left out. */
export interface RanCommand {
  do: "ran";
  series: UsageSeries;
  ratePerMs: number;
  fromMs: number;
  untilMs: number;
}

export interface CountCommand {
  do: "count";
  events: readonly UsageEvent[];
}

export type MeterCommand = RateCommand | RanCommand | CountCommand;

export interface MeterMemory {
  readonly node: string;
  readonly spans: Map<string, UsageSpan>;
  /** Series that the previous server process had running. */
  readonly resumable: Set<string>;
  reading: ClockReading;
  coveredUntilMs: number;
  /** Start of the current hour; no open span starts earlier. */
  hourMs: number;
  era: number;
}

/** The change of one series in a commit. */
interface Move {
  events: UsageEvent[];
  open?: UsageSpan;
  close?: { node: string; series: UsageSeries; untilMs: number };
}

/**
 * After a restart: every open span ends at the time it was last covered. Whatever still runs is observed again with its
 * old start and continues from exactly there, so nothing is lost or counted twice.
 */
export function planResume(
  node: string,
  state: MeterState | null,
  reading: ClockReading,
  resumable = new Set<string>(),
): { memory: MeterMemory; changes: UsageChange[] } {
  const { wallMs } = reading;
  const spans = state?.spans ?? [];
  const coveredUntilMs = state?.coveredUntilMs ?? wallMs;
  // A clock that was set back may pass the same hours again: the new era keeps their events apart.
  const era = (state?.era ?? 0) + (coveredUntilMs > wallMs ? 1 : 0);
  const moves = spans.map((span): Move => {
    const untilMs = Math.max(span.startMs, coveredUntilMs);
    resumable.add(seriesKey(span.series));
    return { events: settle(span, untilMs), close: { node, series: span.series, untilMs } };
  });
  const memory: MeterMemory = {
    node,
    spans: new Map(),
    resumable,
    reading,
    coveredUntilMs: wallMs,
    hourMs: hourMs(hourOf(wallMs)),
    era,
  };
  return { memory, changes: changesOf(memory, moves) };
}

/** A flush: full hours are settled, commands take effect, and the node's covered time moves to now. */
export function planFlush(
  memory: MeterMemory,
  commands: readonly MeterCommand[],
  states: ReadonlyMap<string, SeriesState>,
  reading: ClockReading,
  rateOf: RateOf,
): UsageChange[] {
  const moves: Move[] = [];
  const stepMs = clockStepMs(memory.reading, reading);
  if (stepMs === 0) {
    memory.coveredUntilMs = Math.max(memory.coveredUntilMs, reading.wallMs);
  } else {
    const settledMs = Math.max(memory.coveredUntilMs, reading.wallMs - stepMs);
    memory.era += 1;
    memory.coveredUntilMs = reading.wallMs;
    for (const span of memory.spans.values()) {
      moves.push(reopen(memory, span, settledMs, reading.wallMs, rateOf));
    }
  }
  memory.reading = reading;
  const thisHourMs = hourMs(hourOf(memory.coveredUntilMs));
  // All spans are visited once an hour only, so that other flushes cost no more than the changes since the last one.
  if (thisHourMs !== memory.hourMs) {
    memory.hourMs = thisHourMs;
    for (const span of memory.spans.values()) {
      if (span.startMs < thisHourMs) moves.push(reopen(memory, span, thisHourMs, thisHourMs, rateOf));
    }
  }
  const closedUntil = new Map([...states].map(([key, { meteredUntilMs }]) => [key, meteredUntilMs ?? 0]));
  for (const command of commands) {
    if (command.do === "count") for (const event of command.events) moves.push({ events: splitAtHours(event) });
    else if (command.do === "ran") moves.push(...planRan(memory, command, states, closedUntil, rateOf));
    else moves.push(...planRate(memory, command, states, closedUntil, rateOf));
  }
  // Without open spans the covered time does not matter.
  if (moves.length === 0 && memory.spans.size === 0 && stepMs === 0) return [];
  return changesOf(memory, moves);
}

function planRate(
  memory: MeterMemory,
  { series, ratePerMs, atMs, resume }: RateCommand,
  states: ReadonlyMap<string, SeriesState>,
  closedUntil: Map<string, number>,
  rateOf: RateOf,
): Move[] {
  const key = seriesKey(series);
  const running = memory.spans.get(key);
  if ((running?.ratePerMs ?? 0) === ratePerMs) return [];
  const nowMs = memory.coveredUntilMs;
  const moves: Move[] = [];
  if (running) {
    const untilMs = Math.min(nowMs, Math.max(atMs, running.startMs));
    memory.spans.delete(key);
    closedUntil.set(key, untilMs);
    moves.push({ events: settle(running, untilMs), close: { node: memory.node, series, untilMs } });
  } else {
    moves.push(...settleDeadNodes(states.get(key), nowMs));
  }
  const sinceMs = resume && !memory.resumable.has(key) ? nowMs : atMs;
  const startMs = Math.min(nowMs, Math.max(sinceMs, nowMs - BACKDATE_MAX_MS, closedUntil.get(key) ?? 0));
  if (ratePerMs > 0) moves.push(open(memory, series, ratePerMs, startMs, rateOf));
  return moves;
}

function planRan(
  memory: MeterMemory,
  { series, ratePerMs, fromMs, untilMs }: RanCommand,
  states: ReadonlyMap<string, SeriesState>,
  closedUntil: Map<string, number>,
  rateOf: RateOf,
): Move[] {
  const key = seriesKey(series);
  // A running series is metered already, and its earlier time was settled when its span began.
  if (memory.spans.has(key)) return [];
  const nowMs = memory.coveredUntilMs;
  const moves = settleDeadNodes(states.get(key), nowMs);
  const startMs = Math.max(fromMs, nowMs - BACKDATE_MAX_MS, closedUntil.get(key) ?? 0);
  const endMs = Math.min(nowMs, untilMs);
  if (endMs <= startMs) return moves;
  closedUntil.set(key, endMs);
  const events = settle(spanFrom(memory, series, ratePerMs, startMs, rateOf), endMs);
  return [...moves, { events, close: { node: memory.node, series, untilMs: endMs } }];
}

/**
 * Several nodes may run replicas of one resource, each with its own span. The spans of a node that is gone are settled
 * up to its last report.
 */
function settleDeadNodes(state: SeriesState | undefined, nowMs: number): Move[] {
  return (state?.elsewhere ?? [])
    .filter(({ coveredUntilMs }) => coveredUntilMs < nowMs - SILENT_MAX_MS)
    .map(({ node, span, coveredUntilMs }) => {
      const untilMs = Math.max(span.startMs, coveredUntilMs);
      return { events: settle(span, untilMs), close: { node, series: span.series, untilMs } };
    });
}

/** Opens a span and settles the part of it that lies in past hours. */
function open(memory: MeterMemory, series: UsageSeries, ratePerMs: number, startMs: number, rateOf: RateOf): Move {
  const thisHourMs = hourMs(hourOf(memory.coveredUntilMs));
  const whole = spanFrom(memory, series, ratePerMs, startMs, rateOf);
  if (startMs < thisHourMs) return reopen(memory, whole, thisHourMs, thisHourMs, rateOf);
  memory.spans.set(seriesKey(series), whole);
  return { events: [], open: whole };
}

function reopen(memory: MeterMemory, span: UsageSpan, untilMs: number, startMs: number, rateOf: RateOf): Move {
  const next = spanFrom(memory, span.series, span.ratePerMs, startMs, rateOf);
  memory.spans.set(seriesKey(span.series), next);
  return { events: settle(span, untilMs), open: next };
}

const spanFrom = (
  memory: MeterMemory,
  series: UsageSeries,
  ratePerMs: number,
  startMs: number,
  rateOf: RateOf,
): UsageSpan => ({
  series,
  startMs,
  ratePerMs,
  key: `span-${memory.era}`,
  price: rateOf(series.dimension, hourOf(startMs)),
});

function settle({ series, startMs, ratePerMs, key }: UsageSpan, endMs: number): UsageEvent[] {
  return hourPieces(startMs, endMs).map((piece) => ({
    series,
    ...piece,
    quantity: ratePerMs * (piece.endMs - piece.startMs),
    key,
  }));
}

/** How far the wall clock was set since the last reading, in milliseconds; 0 when it only ran. */
function clockStepMs(before: ClockReading, now: ClockReading): number {
  const elapsedMs = now.monotonicMs - before.monotonicMs;
  const stepMs = now.wallMs - before.wallMs - elapsedMs;
  return Math.abs(stepMs) > STEP_MIN_MS + elapsedMs * DRIFT_RATIO ? stepMs : 0;
}

/** Splits the moves into bounded commits. Only the last one moves the covered time, when all others are durable. */
function changesOf(memory: MeterMemory, moves: readonly Move[]): UsageChange[] {
  const changes: UsageChange[] = [];
  for (let chunk: Move[] = [], spans = 0, events = 0, index = 0; index < moves.length; index += 1) {
    const move = moves[index];
    if (!move) break;
    chunk.push(move);
    spans += move.open || move.close ? 1 : 0;
    events += move.events.length;
    if (spans < SPANS_PER_CHANGE && events < EVENTS_PER_CHANGE && index < moves.length - 1) continue;
    changes.push(changeOf(memory.node, chunk));
    chunk = [];
    spans = 0;
    events = 0;
  }
  const covered = { node: memory.node, untilMs: memory.coveredUntilMs, era: memory.era };
  const last = changes.pop();
  return [...changes, { ...last, covered }];
}

/** All events, and the final state of every series. */
function changeOf(node: string, moves: readonly Move[]): UsageChange {
  const last = new Map<string, Move>();
  for (const move of moves) {
    const series = move.open?.series ?? move.close?.series;
    if (series) last.set(`${move.close?.node ?? node} ${seriesKey(series)}`, move);
  }
  return {
    events: moves.flatMap(({ events }) => events),
    open: [...last.values()].flatMap((move) => (move.open ? [{ node, span: move.open }] : [])),
    close: [...last.values()].flatMap((move) => (move.close ? [move.close] : [])),
  };
}

/** Largest rate, in base units per millisecond: the usage of an hour stays a safe integer. */
export const RATE_MAX = Math.floor(Number.MAX_SAFE_INTEGER / (2 * HOUR_MS));
