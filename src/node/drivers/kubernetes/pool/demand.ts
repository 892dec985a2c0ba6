/** Which kinds of pods are asked for most. */
import type { PoolKind } from "./pool-kind.ts";

/** Kinds in stock at a time: most sandboxes of an installation have one or two sizes. */
const KINDS_MAX = 2;
/** Kinds that are counted at a time. */
const COUNTED_MAX = 100;
/** A kind that was not asked for this long has no pods. */
export const DEMAND_MS = 60 * 60_000;
/** Time in which the weight of a request falls to half. */
const HALF_LIFE_MS = 10 * 60_000;

interface Count {
  kind: PoolKind;
  weight: number;
  atMs: number;
}

const weightAt = ({ weight, atMs }: Count, nowMs: number): number => weight * 0.5 ** ((nowMs - atMs) / HALF_LIFE_MS);

export class Demand {
  readonly #counts = new Map<string, Count>();

  ask(kind: PoolKind, nowMs: number): void {
    const before = this.#counts.get(kind.key);
    this.#counts.delete(kind.key);
    this.#counts.set(kind.key, { kind, weight: 1 + (before ? weightAt(before, nowMs) : 0), atMs: nowMs });
    const [oldest] = this.#counts.keys();
    if (this.#counts.size > COUNTED_MAX && oldest !== undefined) this.#counts.delete(oldest);
  }

  /** The kinds to keep in stock, the most wanted first. */
  wanted(nowMs: number): PoolKind[] {
    return [...this.#counts.values()]
      .filter(({ atMs }) => nowMs - atMs < DEMAND_MS)
      .sort((a, b) => weightAt(b, nowMs) - weightAt(a, nowMs))
      .slice(0, KINDS_MAX)
      .map(({ kind }) => kind);
  }
}
