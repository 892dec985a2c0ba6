import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Time until the parts opened in the background are open too. */
const SETTLE_MS = 1500;

/**
 * Collects the garbage from loading once and returns its memory to the system, together with the room that V8's young
 * generation grew to meanwhile. V8 itself does that only under pressure.
 */
export function settleMemory(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as (options: Record<string, string>) => void;
  setTimeout(() => collect({ type: "major", execution: "sync", flavor: "last-resort" }), SETTLE_MS).unref();
}
