/** Repeats requests to a registry that failed for a reason that may pass. */
import { setTimeout as pause } from "node:timers/promises";
import { SECOND_MS } from "../lib/time/clock.ts";
import { RegistryProblem } from "./problem.ts";

export interface Patience {
  /** How often a request is sent in all. */
  attempts: number;
  /** Pause before the second attempt; each further one is twice as long. */
  firstPauseMs: number;
}

export const PATIENT: Patience = { attempts: 5, firstPauseMs: SECOND_MS / 2 };
/** For a caller that waits for the answer: a lost connection is tried once more, nothing else. */
export const BRIEF: Patience = { attempts: 2, firstPauseMs: SECOND_MS / 10 };

/** A registry that asks for a longer pause fails the pull instead; its answer says how long. */
const WAIT_MAX_MS = 30 * SECOND_MS;

export async function withPatience<T>(
  { attempts, firstPauseMs }: Patience,
  signal: AbortSignal,
  work: (attempt: number) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(attempt);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof RegistryProblem) || !error.isTransient || attempt >= attempts) throw error;
      const waitMs = Math.max(error.waitMs ?? 0, firstPauseMs * 2 ** (attempt - 1));
      if (waitMs > WAIT_MAX_MS) throw error;
      await pause(waitMs, undefined, { signal });
    }
  }
}
