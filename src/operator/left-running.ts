/** Messages about workloads when the server stops: by default, Ctrl-C ends only the server. */
import type { Config } from "../config.ts";
import type { OnStop } from "../node/driver.ts";
import { ownedWorkloads } from "./runtime.ts";

/** For each value of on_stop: what happens to workloads, told before and after the stop. */
const FATES: Record<Config["on_stop"], { before: string; after: string | null }> = {
  keep: {
    before: "Stop with Ctrl-C: workloads go on. `npx berth down` ends them too.",
    after: "still running. The next start takes over; `npx berth down` ends what runs.",
  },
  freeze: {
    before: "Stop with Ctrl-C: workloads are frozen. `npx berth down` ends them too.",
    after: "frozen. The next start goes on with what is frozen; `npx berth down` ends it.",
  },
  kill: { before: "Stop with Ctrl-C: workloads end too; files of sandboxes stay.", after: null },
};

export const stopHint = ({ on_stop: onStop }: Config): string => FATES[onStop].before;

/** Null when a stop leaves nothing behind. */
export async function leftBehind(config: Config, onStop: OnStop): Promise<string | null> {
  const after = onStop === "keep" || onStop === "freeze" ? FATES[onStop].after : null;
  if (after === null) return null;
  const count = (await ownedWorkloads(config)).filter(({ runs }) => runs).length;
  if (count === 0) return null;
  return `\n  Berth has stopped. ${count} workload${count === 1 ? " is" : "s are"} ${after}\n`;
}
