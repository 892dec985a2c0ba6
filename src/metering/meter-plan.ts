/**
 * What a meter decides, without doing it. Spans that run are held open in the ledger, priced and counted up to the
 * moment their node has last vouched for ("covered"); so one small write every few seconds keeps any number of them
 * live. A span becomes an event when it ends, when its rate changes, and at every full hour.
 *
 * Elapsed time comes from the monotonic clock, labels from the wall clock. Where the two part (the clock was set, the
 * machine slept) every span is settled with the time that really passed and goes on under the new wall time.
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

/** Clocks drift and timers are late; a difference beyond this is a step. */
const STEP_MIN_MS = 1000;
const DRIFT_RATIO = 0.001;
/** A start further back is a broken clock, not a long outage. */
export const BACKDATE_MAX_MS = 31 * DAY_MS;
/** In one transaction, so that a commit takes some ten milliseconds; a single span may bring the hours of a month. */
const SPANS_PER_CHANGE = 500;
const EVENTS_PER_CHANGE = 1000;
/** A node that has not vouched for its spans for so long is gone; another one settles them. */
const SILENT_MAX_MS = 60_000;

export interface ClockReading {
  wallMs: number;
  monotonicMs: number;
}

/**
 * From `atMs` on, `series` uses `ratePerMs` base units in every millisecond; 0 ends it. With `resume`, it goes on from
 * where the server before this one left it, if that one had it running; otherwise it begins now.
 */
export interface RateCommand {
  do: "rate";
  series: UsageSeries;
  ratePerMs: number;
  atMs: number;
  resume: boolean;
}

/** `series` used `ratePerMs` in [fromMs, untilMs) and does no more; what of it was metered already is left out. */
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
  /** What the server before this one had running. */
  readonly resumable: Set<string>;
  reading: ClockReading;
  coveredUntilMs: number;
  /** No span starts before this hour. */
  hourMs: number;
  era: number;
}

/** One series' part in a commit. */
interface Move {
  events: UsageEvent[];
  open?: UsageSpan;
  close?: { node: string; series: UsageSeries; untilMs: number };
}

/**
 * After a restart: everything that was open ends where it was last vouched for. Whatever still runs is observed anew
 * with its old start and goes on from exactly there, so nothing is lost and nothing is counted twice.
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
  // A clock that went back may come by the same hours again: the new era keeps their events apart.
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

/** A flush: time passes, full hours are settled, commands take effect, and the node vouches for all of it. */
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
  // All that runs is looked at once an hour only: a flush costs what happened since the last one.
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
  // With nothing running there is nothing to vouch for.
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
  // Something that runs is metered already, and what ran before it was settled when it began.
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
 * Several nodes may run copies of one resource, each with its own span. What a node that is gone still holds is settled
 * up to where it was last heard of.
 */
function settleDeadNodes(state: SeriesState | undefined, nowMs: number): Move[] {
  return (state?.elsewhere ?? [])
    .filter(({ coveredUntilMs }) => coveredUntilMs < nowMs - SILENT_MAX_MS)
    .map(({ node, span, coveredUntilMs }) => {
      const untilMs = Math.max(span.startMs, coveredUntilMs);
      return { events: settle(span, untilMs), close: { node, series: span.series, untilMs } };
    });
}

/** A new span; what of it lies in hours that are over is settled at once. */
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

/** How far the wall clock was moved since the last reading; 0 when it merely ran. */
function clockStepMs(before: ClockReading, now: ClockReading): number {
  const elapsedMs = now.monotonicMs - before.monotonicMs;
  const stepMs = now.wallMs - before.wallMs - elapsedMs;
  return Math.abs(stepMs) > STEP_MIN_MS + elapsedMs * DRIFT_RATIO ? stepMs : 0;
}

/** Bounded commits; only the last one vouches for the time up to now, when everything before it is safe. */
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

/** All events, and for every series how it stands after its last move. */
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

/** An hour of the largest rate stays a safe integer. */
export const RATE_MAX = Math.floor(Number.MAX_SAFE_INTEGER / (2 * HOUR_MS));
