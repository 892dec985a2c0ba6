/**
 * What a server has seen of the models that share a balance: failures, time to the first byte, requests under way.
 *
 * A model that fails FAILURES_TO_EJECT times in a row, or asks for a pause with Retry-After, is ejected: balances leave
 * it out for a while. Then one request is its trial. If the trial succeeds the model is back; if the trial fails the
 * model is ejected for twice as long. A caller that goes away is no verdict (it only makes the model look as slow as the caller waited), and neither is a request that the provider
 * refuses as a bad one, so a caller cannot eject a model by what it sends or by hanging up.
 */
import { retryAfterMs } from "../retry.ts";

/** Providers answer with a single 500 or 503 now and then; three in a row are an outage. */
const FAILURES_TO_EJECT = 3;
const EJECTED_BASE_MS = 10_000;
/** A provider that is back gets its trial within this time, whatever it has done or asked for. */
const EJECTED_MAX_MS = 300_000;
/** Keeps the power finite; EJECTED_MAX_MS is reached before. */
const DOUBLINGS_MAX = 10;
/** Weight of the newest sample in the average: about the last ten requests count. */
const SAMPLE_WEIGHT = 0.2;
/** An average that gets no samples halves in this time, so that a slow model is measured again in the end. */
const HALF_LIFE_MS = 30_000;
/** Models that are remembered; beyond it those seen first are forgotten, which costs their averages. */
const STATES_MAX = 10_000;

/** `well`: takes requests. `due`: its ejection is over and the next request is its trial. `out`: is left out. */
export type Standing = "well" | "due" | "out";

interface Average {
  ms: number;
  atMs: number;
  /** Callers waited this long in vain: the true value is larger. */
  isLowerBound: boolean;
}

interface State {
  failures: number;
  /** Ejections since the last success. */
  ejections: number;
  /** 0 for a model that is not ejected. */
  ejectedUntilMs: number;
  onTrial: boolean;
  underWay: number;
  /** Time to the first byte. Whole answers take as long as they are, so streams have an average of their own. */
  whole: Average | null;
  streamed: Average | null;
  /** Whether such a request was sent, whatever came of it. */
  tried: { whole: boolean; streamed: boolean };
}

/** One request at one model. */
export interface Visit {
  /** The answer of a success began this long after it was asked for. */
  began(waitedMs: number): void;
  /** The caller went away after this long, before an answer began. */
  abandoned(waitedMs: number): void;
  succeeded(): void;
  /** The headers of the answer, if there was one. */
  failed(headers: readonly string[]): void;
  /** Always called, once, after all else. */
  over(): void;
}

export class ModelHealth {
  readonly #now: () => number;
  readonly #ejected: (uid: string, forMs: number) => void;
  readonly #states = new Map<string, State>();

  constructor(now: () => number, ejected: (uid: string, forMs: number) => void) {
    this.#now = now;
    this.#ejected = ejected;
  }

  standing(uid: string): Standing {
    const state = this.#states.get(uid);
    if (!state || state.ejectedUntilMs === 0) return "well";
    return state.onTrial || this.#now() < state.ejectedUntilMs ? "out" : "due";
  }

  /** When the ejection ends; 0 for a model that is not ejected. */
  ejectedUntilMs(uid: string): number {
    return this.#states.get(uid)?.ejectedUntilMs ?? 0;
  }

  underWay(uid: string): number {
    return this.#states.get(uid)?.underWay ?? 0;
  }

  /** The average time to the first byte, null when nothing was measured. */
  latencyMs(uid: string, stream: boolean): number | null {
    const state = this.#states.get(uid);
    const average = stream ? state?.streamed : state?.whole;
    return average ? average.ms * 0.5 ** ((this.#now() - average.atMs) / HALF_LIFE_MS) : null;
  }

  /** True once a request of this kind was sent to the model. */
  tried(uid: string, stream: boolean): boolean {
    return this.#states.get(uid)?.tried[stream ? "streamed" : "whole"] ?? false;
  }

  visit(uid: string, stream: boolean): Visit {
    const state = this.#stateOf(uid);
    const isTrial = this.standing(uid) === "due";
    if (isTrial) state.onTrial = true;
    state.underWay += 1;
    const slot = stream ? "streamed" : "whole";
    state.tried[slot] = true;
    return {
      began: (waitedMs) => {
        const known = state[slot];
        const before = known && !known.isLowerBound ? known.ms : waitedMs;
        const ms = before + (waitedMs - before) * SAMPLE_WEIGHT;
        state[slot] = { ms, atMs: this.#now(), isLowerBound: false };
        // A stream may last minutes: the model is back when it begins, and the next failure ejects it again.
        if (isTrial) state.ejectedUntilMs = 0;
      },
      abandoned: (waitedMs) => {
        const knownMs = state[slot]?.ms ?? 0;
        // A caller that hangs up early says nothing; one that waited longer than usual met a slow model.
        if (waitedMs > knownMs) state[slot] = { ms: waitedMs, atMs: this.#now(), isLowerBound: true };
      },
      succeeded() {
        state.failures = 0;
        // An answer to a request from before the ejection says nothing about now.
        if (state.ejectedUntilMs !== 0 && !isTrial) return;
        state.ejections = 0;
        state.ejectedUntilMs = 0;
      },
      failed: (headers) => {
        state.failures += 1;
        if (state.ejectedUntilMs !== 0 && !isTrial) return;
        const isOutage = isTrial || state.failures >= FAILURES_TO_EJECT;
        const outageMs = isOutage ? EJECTED_BASE_MS * 2 ** Math.min(state.ejections, DOUBLINGS_MAX) : 0;
        const forMs = Math.min(EJECTED_MAX_MS, Math.max(outageMs, retryAfterMs(headers, this.#now()) ?? 0));
        if (forMs <= 0) return;
        state.ejections += 1;
        state.ejectedUntilMs = this.#now() + forMs;
        this.#ejected(uid, forMs);
      },
      over() {
        state.underWay -= 1;
        if (isTrial) state.onTrial = false;
      },
    };
  }

  #stateOf(uid: string): State {
    const known = this.#states.get(uid);
    if (known) return known;
    const [oldest] = this.#states.size >= STATES_MAX ? this.#states.keys() : [];
    if (oldest !== undefined) this.#states.delete(oldest);
    const state: State = {
      ...{ failures: 0, ejections: 0, ejectedUntilMs: 0, onTrial: false, underWay: 0 },
      ...{ whole: null, streamed: null, tried: { whole: false, streamed: false } },
    };
    this.#states.set(uid, state);
    return state;
  }
}
