/** Waits for a state, never for a time. */
import { setTimeout as delay } from "node:timers/promises";

const LOOK_MS = 100;
/** Far longer than any state here takes: a test that waits in vain fails. */
const PATIENCE_MS = 240_000;

export async function until<T>(what: string, look: () => Promise<T | null | undefined | false>): Promise<T> {
  const giveUp = Date.now() + PATIENCE_MS;
  let last: unknown;
  for (;;) {
    try {
      const seen = await look();
      if (seen) return seen;
      last = seen;
    } catch (error) {
      last = error;
    }
    if (Date.now() > giveUp) throw new Error(`still waiting until ${what}: ${String(last)}`);
    await delay(LOOK_MS);
  }
}
