/**
 * What the TypeScript SDK adds to a command in a sandbox, and to a read of a record: the same requests with bare `fetch`
 * are the reference of the same run, one after the other in turns.
 *
 *   npm run bench -- sdk [--rounds=500]
 */
import { Berth, Sandbox } from "../sdk/typescript/src/index.ts";
import { percentiles, table } from "./measure.ts";
import { startBenchPlatform } from "./sandbox-parts/platform.ts";

const WARM_UP = 30;

export async function run(flags: string[]): Promise<void> {
  const rounds = Number(flags.find((flag) => flag.startsWith("--rounds="))?.split("=")[1] ?? 500);
  const platform = await startBenchPlatform({ BERTH_POOL_SIZE: "1" });
  try {
    const { url, apiKey } = platform;
    const berth = new Berth({ url, apiKey, workspace: "main" });
    const box = await Sandbox.create({ berth, memoryMb: 512 });
    const headers = { "x-service-authorization": `Bearer ${apiKey}`, "service-version": "2026-04-28" };
    const execution = {
      method: "POST",
      headers: { ...headers, "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify({ command: "true" }),
    };
    await compare("a command", rounds, {
      fetch: async () => (await fetch(`${box.address}/process`, execution)).text(),
      SDK: () => box.run("true"),
    });
    await compare("a read of a record", rounds, {
      fetch: async () => (await fetch(`${url}/v0/sandboxes/${box.name}`, { headers })).json(),
      SDK: () => box.refresh(),
    });
    await box.delete();
  } finally {
    await platform.stop();
  }
}

async function compare(what: string, rounds: number, ways: Record<string, () => Promise<unknown>>): Promise<void> {
  const times = new Map<string, number[]>(Object.keys(ways).map((name) => [name, []]));
  for (let round = -WARM_UP; round < rounds; round += 1)
    for (const [name, work] of Object.entries(ways)) {
      const at = performance.now();
      await work();
      if (round >= 0) times.get(name)?.push(performance.now() - at);
    }
  const rows = [...times].map(([name, list]) => ({ name, p5Ms: fast(list), ...percentiles(list) }));
  const [reference, own] = rows;
  table(what, rows);
  const added = (at: "p5Ms" | "p50Ms"): string => ((own?.[at] ?? 0) - (reference?.[at] ?? 0)).toFixed(3);
  console.log(`the SDK adds ${added("p50Ms")} ms (p50), ${added("p5Ms")} ms (p5, which other work disturbs least)`);
}

const fast = (times: number[]): number => times.toSorted((a, b) => a - b)[Math.floor(times.length / 20)] ?? Number.NaN;
