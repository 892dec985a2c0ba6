import { DAY_MS, HOUR_MS, MINUTE_MS } from "../lib/time/clock.ts";

/** What a token policy allows in one window. Zero or absent means that this side has no limit. */
export interface TokenLimits {
  granularity: "minute" | "hour" | "day" | "month";
  /** Windows are `step` units of the granularity long. */
  step: number;
  input: number;
  output: number;
  total: number;
  /** Input may be at most this many times the output. */
  ratioInputOverOutput: number;
  requests: number;
  /** Requests that are byte for byte the same. */
  repeats: number;
  /** Whose tokens are counted together: everybody's, those of one caller, or those of one session of a caller. */
  per: CapScope;
}

export type CapScope = "policy" | "key" | "session";

export interface TokenWindow {
  startMs: number;
  endMs: number;
}

const UNIT_MS = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS } as const;

/**
 * The window that holds an instant. Windows are aligned to the clock (UTC), not to the first request, so that every
 * process agrees on them and a caller can tell when the next one opens.
 */
export function windowAt(limits: Pick<TokenLimits, "granularity" | "step">, nowMs: number): TokenWindow {
  const step = Math.max(1, Math.floor(limits.step));
  if (limits.granularity === "month") {
    const now = new Date(nowMs);
    const month = now.getUTCFullYear() * 12 + now.getUTCMonth();
    const first = month - (month % step);
    return { startMs: monthStartMs(first), endMs: monthStartMs(first + step) };
  }
  const lengthMs = UNIT_MS[limits.granularity] * step;
  const startMs = nowMs - (nowMs % lengthMs);
  return { startMs, endMs: startMs + lengthMs };
}

const monthStartMs = (month: number): number => Date.UTC(Math.floor(month / 12), month % 12);

const GRANULARITIES: Record<string, TokenLimits["granularity"]> = {
  minute: "minute",
  hour: "hour",
  day: "day",
  month: "month",
};

const SCOPES: readonly CapScope[] = ["policy", "key", "session"];
const COUNTS = ["input", "output", "total", "ratioInputOverOutput", "requests", "repeats"] as const;

/** `spec.maxTokens` of a policy as stored: absent numbers are off, an absent granularity is a day. */
export function readTokenLimits(maxTokens: Record<string, unknown> | undefined): TokenLimits | null {
  if (!maxTokens) return null;
  const count = (name: string): number => {
    const value = Number(maxTokens[name] ?? 0);
    return Number.isFinite(value) && value > 0 ? value : 0;
  };
  const limits: TokenLimits = {
    granularity: GRANULARITIES[String(maxTokens.granularity ?? "day")] ?? "day",
    step: Math.max(1, Math.floor(count("step"))),
    input: count("input"),
    output: count("output"),
    total: count("total"),
    ratioInputOverOutput: count("ratioInputOverOutput"),
    requests: count("requests"),
    repeats: count("repeats"),
    per: SCOPES.find((scope) => scope === maxTokens.per) ?? "policy",
  };
  return COUNTS.some((name) => limits[name] > 0) ? limits : null;
}
