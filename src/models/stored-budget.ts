/**
 * Token caps that survive a restart and hold over several servers. What is used is one number for all; what is held
 * for requests in flight is kept by server, so that what a dead server held is given back.
 */
import { type Clock, MINUTE_MS } from "../lib/time/clock.ts";
import type { Records } from "../store/records.ts";
import { type BudgetState, type Changed, emptyWindow, type TokenAmount, type WindowState } from "./token-budget.ts";

/** Longer than any request may take: reservations of a server that was silent for this long are void. */
const SILENT_MAX_MS = 20 * MINUTE_MS;
/** A request that is in flight at the end of its window settles before the record goes. */
const KEPT_AFTER_END_MS = 60 * MINUTE_MS;

interface Held {
  reserved: TokenAmount;
  inFlight: number;
  atMs: number;
}

interface StoredWindow {
  used: TokenAmount;
  longestOutput: number;
  /** Absent in records of older versions. */
  requests?: number;
  repeated?: Record<string, number>;
  held: Record<string, Held>;
}

export interface StoredBudgetDeps {
  records: Records;
  clock: Clock;
  /** Distinguishes this server from others on the same database. */
  holder: string;
  /** No other server can be holding anything: this one owns the database. */
  alone: boolean;
}

export function createStoredBudget({ records, clock, holder, alone }: StoredBudgetDeps): BudgetState {
  return {
    update: <T>(key: string, expiresAtMs: number, change: (state: WindowState) => Changed<T>): Promise<T> =>
      records.update(recordOf(key), expiresAtMs + KEPT_AFTER_END_MS, (value) => {
        const stored: StoredWindow =
          value === null ? { ...emptyWindow(), held: {} } : (JSON.parse(value) as StoredWindow);
        const others = Object.entries(stored.held).filter(
          ([name, { atMs }]) => name !== holder && !alone && clock.now() - atMs < SILENT_MAX_MS,
        );
        const foreign = sumOf(others.map(([, held]) => held));
        const own = stored.held[holder] ?? { reserved: { input: 0, output: 0 }, inFlight: 0, atMs: 0 };
        const { state, result } = change({
          used: stored.used,
          longestOutput: stored.longestOutput,
          requests: stored.requests ?? 0,
          repeated: stored.repeated ?? {},
          ...sumOf([own, foreign]),
        });
        const next: StoredWindow = {
          used: state.used,
          longestOutput: state.longestOutput,
          requests: state.requests,
          repeated: state.repeated,
          held: { ...Object.fromEntries(others), [holder]: { ...lessOf(state, foreign), atMs: clock.now() } },
        };
        return { value: JSON.stringify(next), result };
      }),
  };
}

/** What finished requests used of a window; nothing where none was asked for yet. */
export async function readStoredWindow(
  records: Pick<Records, "read">,
  key: string,
): Promise<Pick<WindowState, "used" | "requests">> {
  const value = await records.read(recordOf(key));
  const { used, requests = 0 } = value === null ? emptyWindow() : (JSON.parse(value) as StoredWindow);
  return { used, requests };
}

const recordOf = (key: string): string => `tokens/${key}`;

type Amounts = Pick<WindowState, "reserved" | "inFlight">;

const sumOf = (all: Amounts[]): Amounts =>
  all.reduce<Amounts>(
    (sum, one) => ({
      reserved: { input: sum.reserved.input + one.reserved.input, output: sum.reserved.output + one.reserved.output },
      inFlight: sum.inFlight + one.inFlight,
    }),
    { reserved: { input: 0, output: 0 }, inFlight: 0 },
  );

const lessOf = (all: Amounts, part: Amounts): Amounts => ({
  reserved: {
    input: Math.max(0, all.reserved.input - part.reserved.input),
    output: Math.max(0, all.reserved.output - part.reserved.output),
  },
  inFlight: Math.max(0, all.inFlight - part.inFlight),
});
