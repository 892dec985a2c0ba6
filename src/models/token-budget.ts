/**
 * Token caps that hold. A request reserves what it may use (prompt estimate plus the most it may generate) before it
 * is sent, and settles what it did use afterwards. Whoever does not fit waits for the next window, with one exception:
 * when nothing is in flight one request is admitted although its reservation does not fit, because a cap smaller than
 * a single reservation would otherwise admit nobody. So the overrun is at most one request, however many arrive at
 * once.
 *
 * The rules are pure functions over one small record per policy and window; where that record lives is the business
 * of a BudgetState. The one here keeps it in memory; one backed by a database does the same change in a transaction.
 */
import type { Clock } from "../lib/time/clock.ts";
import { type TokenLimits, windowAt } from "./token-window.ts";

export interface TokenAmount {
  input: number;
  output: number;
}

export interface WindowState {
  /** Tokens of finished requests. */
  used: TokenAmount;
  /** Tokens held for requests in flight. */
  reserved: TokenAmount;
  inFlight: number;
  /** The longest answer seen in this window: the reservation for requests that state no maximum. */
  longestOutput: number;
  /** Requests that were admitted. */
  requests: number;
  /** How often the same request was admitted, by fingerprint; the latest ones, and only where a limit counts them. */
  repeated: Record<string, number>;
}

/** Atomic read-modify-write of one record. `change` may run again when a database retries the transaction. */
export interface BudgetState {
  update<T>(key: string, expiresAtMs: number, change: (state: WindowState) => Changed<T>): Promise<T> | T;
}

export interface Changed<T> {
  state: WindowState;
  result: T;
}

export interface CappedPolicy {
  /** Unique over all tenants, for instance workspace and policy name. */
  key: string;
  name: string;
  limits: TokenLimits;
}

export interface BudgetAsk {
  policies: CappedPolicy[];
  input: number;
  /** Null when the request states no maximum. */
  output: number | null;
  /** Tells one request from another; asked only where a limit counts repeats. */
  fingerprint?: (() => string) | undefined;
}

export interface Reservation {
  /** Counts what was used. Only the first of settle and release has an effect. */
  settle(actual: TokenAmount): Promise<void>;
  /** Gives everything back: the request used nothing. */
  release(): Promise<void>;
}

export type LimitName = "input" | "output" | "total" | "ratioInputOverOutput" | "requests" | "repeats";

export interface Refusal {
  policy: string;
  limit: LimitName;
  /** When it is worth asking again. */
  retryAfterMs: number;
}

export type TokenAdmission = { reservation: Reservation; refusal?: never } | { refusal: Refusal; reservation?: never };

/** The port the engine asks. */
export interface TokenBudget {
  reserve(ask: BudgetAsk): Promise<TokenAdmission>;
  /** The first limit that is used up; null when there is none. Reserves and counts nothing. */
  spent(policies: readonly CappedPolicy[]): Promise<Refusal | null>;
}

/**
 * Held for a request without a stated maximum until the window has seen a longer answer. Today's chat models rarely
 * write more unasked; a request that does is the reason the longest answer is remembered.
 */
export const OUTPUT_RESERVE_DEFAULT = 16_384;

/** A refused request that would fit once others finish is told to come back this soon. */
const IN_FLIGHT_RETRY_MS = 1000;

export function createTokenBudget({ state, clock }: { state: BudgetState; clock: Clock }): TokenBudget {
  return {
    async reserve(ask) {
      const held: Held[] = [];
      for (const policy of ask.policies) {
        const window = windowAt(policy.limits, clock.now());
        const key = `${policy.key}@${window.startMs}`;
        const verdict = await state.update(key, window.endMs, (current) => admit(current, policy.limits, ask));
        if (verdict.limit) {
          await Promise.all(held.map((hold) => settleOne(state, hold, null, true)));
          const retryAfterMs = verdict.whenFree ? IN_FLIGHT_RETRY_MS : Math.max(1, window.endMs - clock.now());
          return { refusal: { policy: policy.name, limit: verdict.limit, retryAfterMs } };
        }
        held.push({ key, expiresAtMs: window.endMs, amount: verdict.amount, print: verdict.print });
      }
      return { reservation: reservationOf(state, held) };
    },
    async spent(policies) {
      for (const { key, name, limits } of policies) {
        const window = windowAt(limits, clock.now());
        const limit = await state.update(`${key}@${window.startMs}`, window.endMs, (current) => ({
          state: current,
          result: spentLimit(limits, current, null),
        }));
        if (limit) return { policy: name, limit, retryAfterMs: Math.max(1, window.endMs - clock.now()) };
      }
      return null;
    },
  };
}

interface Held {
  key: string;
  expiresAtMs: number;
  amount: TokenAmount;
  /** The request's fingerprint, where it was counted. */
  print: string | null;
}

function reservationOf(state: BudgetState, held: Held[]): Reservation {
  let open = true;
  const close = async (actual: TokenAmount | null): Promise<void> => {
    if (!open) return;
    open = false;
    await Promise.all(held.map((hold) => settleOne(state, hold, actual)));
  };
  return { settle: (actual) => close(actual), release: () => close(null) };
}

/** `undo`: the request was refused after all, and is not counted as one. */
async function settleOne(state: BudgetState, hold: Held, actual: TokenAmount | null, undo = false): Promise<void> {
  await state.update(hold.key, hold.expiresAtMs, (current) => {
    const settled = settle(current, hold.amount, actual);
    return { state: undo ? uncounted(settled, hold.print) : settled, result: undefined };
  });
}

type Verdict =
  | { limit: null; amount: TokenAmount; print: string | null }
  | {
      limit: LimitName;
      /** True when the window still has room that others hold; false when it is used up. */
      whenFree: boolean;
    };

/** The rule of the house, one record at a time. */
export function admit(state: WindowState, limits: TokenLimits, ask: Omit<BudgetAsk, "policies">): Changed<Verdict> {
  const amount = {
    input: ask.input,
    output: ask.output ?? Math.max(OUTPUT_RESERVE_DEFAULT, state.longestOutput),
  };
  const print = limits.repeats > 0 ? (ask.fingerprint?.() ?? null) : null;
  const spent = spentLimit(limits, state, print);
  if (spent) return { state, result: { limit: spent, whenFree: false } };
  if (state.inFlight > 0) {
    const planned = add(add(state.used, state.reserved), amount);
    // The output of the requests in flight is not there yet, so a ratio is judged by the input they add.
    const worst = { input: planned.input, output: state.used.output };
    const over = firstExceeded(limits, planned, exceeded) ?? ratioExceeded(limits, worst);
    if (over) return { state, result: { limit: over, whenFree: true } };
  }
  const next = { ...counted(state, print), reserved: add(state.reserved, amount), inFlight: state.inFlight + 1 };
  return { state: next, result: { limit: null, amount, print } };
}

const spentLimit = (limits: TokenLimits, state: WindowState, print: string | null): LimitName | null =>
  firstExceeded(limits, state.used, reached) ?? countReached(limits, state, print);

function countReached(
  limits: TokenLimits,
  { requests, repeated }: WindowState,
  print: string | null,
): LimitName | null {
  if (limits.requests > 0 && requests >= limits.requests) return "requests";
  return print !== null && (repeated[print] ?? 0) >= limits.repeats ? "repeats" : null;
}

/** Fingerprints that are remembered of one window: a loop comes back soon. */
const REPEATED_MAX = 64;

function counted(state: WindowState, print: string | null): WindowState {
  const requests = state.requests + 1;
  if (print === null) return { ...state, requests };
  const { [print]: times = 0, ...others } = state.repeated;
  const kept = Object.entries(others).slice(-(REPEATED_MAX - 1));
  return { ...state, requests, repeated: { ...Object.fromEntries(kept), [print]: times + 1 } };
}

function uncounted(state: WindowState, print: string | null): WindowState {
  const requests = Math.max(0, state.requests - 1);
  if (print === null || state.repeated[print] === undefined) return { ...state, requests };
  return { ...state, requests, repeated: { ...state.repeated, [print]: Math.max(0, state.repeated[print] - 1) } };
}

export function settle(state: WindowState, held: TokenAmount, actual: TokenAmount | null): WindowState {
  return {
    ...state,
    used: actual ? add(state.used, actual) : state.used,
    // A record that expired in between starts at zero; holding less than nothing would admit too much.
    reserved: {
      input: Math.max(0, state.reserved.input - held.input),
      output: Math.max(0, state.reserved.output - held.output),
    },
    inFlight: Math.max(0, state.inFlight - 1),
    longestOutput: Math.max(state.longestOutput, actual?.output ?? 0),
  };
}

export const emptyWindow = (): WindowState => ({
  used: { input: 0, output: 0 },
  reserved: { input: 0, output: 0 },
  inFlight: 0,
  longestOutput: 0,
  requests: 0,
  repeated: {},
});

const add = (a: TokenAmount, b: TokenAmount): TokenAmount => ({
  input: a.input + b.input,
  output: a.output + b.output,
});

const reached = (amount: number, limit: number): boolean => amount >= limit;
const exceeded = (amount: number, limit: number): boolean => amount > limit;

function firstExceeded(
  limits: TokenLimits,
  amount: TokenAmount,
  over: (amount: number, limit: number) => boolean,
): LimitName | null {
  if (limits.input > 0 && over(amount.input, limits.input)) return "input";
  if (limits.output > 0 && over(amount.output, limits.output)) return "output";
  if (limits.total > 0 && over(amount.input + amount.output, limits.total)) return "total";
  return over === reached ? ratioExceeded(limits, amount) : null;
}

function ratioExceeded(limits: TokenLimits, amount: TokenAmount): LimitName | null {
  const { ratioInputOverOutput: ratio } = limits;
  return ratio > 0 && amount.input > ratio * amount.output ? "ratioInputOverOutput" : null;
}

/** Windows that ended this long ago are forgotten; a request in flight at the end of its window settles before. */
const EXPIRED_KEPT_MS = 60 * 60 * 1000;
const SWEEP_EVERY_UPDATES = 1000;

/** Caps of one process, forgotten on restart. */
export class MemoryBudgetState implements BudgetState {
  readonly #records = new Map<string, { state: WindowState; expiresAtMs: number }>();
  readonly #clock: Clock;
  #updates = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  update<T>(key: string, expiresAtMs: number, change: (state: WindowState) => Changed<T>): T {
    this.#updates += 1;
    if (this.#updates % SWEEP_EVERY_UPDATES === 0) this.#sweep();
    const { state, result } = change(this.#records.get(key)?.state ?? emptyWindow());
    this.#records.set(key, { state, expiresAtMs });
    return result;
  }

  /** The record of one window, for tests and metrics. */
  read(key: string): WindowState | null {
    return this.#records.get(key)?.state ?? null;
  }

  #sweep(): void {
    const before = this.#clock.now() - EXPIRED_KEPT_MS;
    for (const [key, record] of this.#records) if (record.expiresAtMs < before) this.#records.delete(key);
  }
}
