/** What the console costs a server that nobody visits: servers with it and servers without its routes, in turn. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Figure } from "./report.ts";
import type { ServerCost } from "./server-process.ts";
import { median } from "./visit.ts";

const STARTS = 7;
const START_TIMEOUT_MS = 120_000;
/** Starts of one and the same server differ by more than this; the share keeps a busy machine from failing it. */
const START_NOISE = 0.05;

export async function figuresOfServer(): Promise<Figure[]> {
  const [withConsole, without]: [ServerCost[], ServerCost[]] = [[], []];
  for (let start = 0; start < STARTS; start += 1) {
    withConsole.push(await startOnce([]));
    without.push(await startOnce(["--without-console"]));
  }
  const of = (costs: readonly ServerCost[], member: keyof ServerCost): number =>
    median(costs.map((cost) => cost[member]));
  const startMs = of(without, "startMs");
  return [
    {
      ...{ what: "server: idle heap that the console adds", unit: "MB" },
      ...{ value: of(withConsole, "heapMb") - of(without, "heapMb"), limit: 1 },
    },
    {
      ...{ what: "server: start, beside one without the console", value: of(withConsole, "startMs") },
      ...{ reference: startMs, limit: 1 + START_NOISE, limitIsRatio: true },
    },
  ];
}

async function startOnce(flags: readonly string[]): Promise<ServerCost> {
  const args = ["--expose-gc", join(import.meta.dirname, "server-process.ts"), ...flags];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: START_TIMEOUT_MS });
  return JSON.parse(stdout) as ServerCost;
}
