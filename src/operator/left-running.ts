/** Messages about workloads when the server stops: by default, Ctrl-C ends only the server. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type Config, driverDir } from "../config.ts";
import type { OnStop } from "../node/driver.ts";

/** For each value of on_stop: what happens to workloads, told before and after the stop. */
const FATES: Record<OnStop, { before: string; after: string | null }> = {
  keep: {
    before: "Stop with Ctrl-C: workloads go on. `npx berth down` ends them too.",
    after: "still running. The next start takes over; `npx berth down` ends what runs.",
  },
  freeze: {
    before: "Stop with Ctrl-C: workloads are frozen. `npx berth down` ends them too.",
    after: "frozen. The next start goes on with what is frozen; `npx berth down` ends it.",
  },
  kill: { before: "Stop with Ctrl-C: workloads end too.", after: null },
};

export const stopHint = ({ on_stop: onStop }: Config): string => FATES[onStop].before;

/** Null when a stop leaves nothing behind. */
export function leftBehind(config: Config, onStop: OnStop): string | null {
  const dir = join(driverDir(config), "workloads");
  const count = existsSync(dir) ? readdirSync(dir).length : 0;
  const { after } = FATES[onStop];
  if (count === 0 || after === null) return null;
  return `\n  Berth has stopped. ${count} workload${count === 1 ? " is" : "s are"} ${after}\n`;
}
