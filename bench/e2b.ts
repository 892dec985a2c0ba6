/**
 * What E2B's API adds to a sandbox's life: create, one command, delete, with bare `fetch` and one after the other in
 * turns. The same three requests to the platform's own API are the reference of the same run.
 *
 *   npm run bench -- e2b [--rounds=100]
 */
import { percentiles, table } from "./measure.ts";
import { startBenchPlatform } from "./sandbox-parts/platform.ts";

const WARM_UP = 10;
const JSON_TYPE = { "content-type": "application/json" };
const MEMORY_MB = 4096;

export async function run(flags: string[]): Promise<void> {
  const rounds = Number(flags.find((flag) => flag.startsWith("--rounds="))?.split("=")[1] ?? 100);
  const platform = await startBenchPlatform({ BERTH_POOL_SIZE: "4" });
  try {
    const ways = { own: () => ownLife(platform), e2b: () => e2bLife(platform) };
    const times: Record<keyof typeof ways, number[]> = { own: [], e2b: [] };
    for (let round = -WARM_UP; round < rounds; round += 1)
      for (const name of ["own", "e2b"] as const) {
        await platform.stocked(1);
        const at = performance.now();
        const remove = await ways[name]();
        if (round >= 0) times[name].push(performance.now() - at);
        await remove();
      }
    const [own, e2b] = [percentiles(times.own), percentiles(times.e2b)];
    table("create and one command", [
      { name: "own API", ...own },
      { name: "E2B's API", ...e2b },
    ]);
    console.log(`E2B's API takes ${(e2b.p50Ms / own.p50Ms).toFixed(2)} times as long (p50)`);
  } finally {
    await platform.stop();
  }
}

interface Place {
  url: string;
  apiKey: string;
}

type Remove = () => Promise<unknown>;

async function ownLife({ url, apiKey }: Place): Promise<Remove> {
  const headers = { ...JSON_TYPE, "x-service-authorization": `Bearer ${apiKey}`, "service-version": "2026-04-28" };
  const body = JSON.stringify({ spec: { runtime: { memory: MEMORY_MB } } });
  const made = await answered(await fetch(`${url}/v0/sandboxes`, { method: "POST", headers, body }));
  const { name } = (JSON.parse(made) as { metadata: { name: string } }).metadata;
  await answered(
    await fetch(`${url}/main/sandboxes/${name}/process`, {
      method: "POST",
      headers: { ...headers, accept: "text/event-stream" },
      body: JSON.stringify({ command: "true" }),
    }),
  );
  return () => fetch(`${url}/v0/sandboxes/${name}`, { method: "DELETE", headers });
}

async function e2bLife({ url, apiKey }: Place): Promise<Remove> {
  const headers = { ...JSON_TYPE, "x-api-key": apiKey };
  const body = JSON.stringify({ templateID: "base" });
  const made = await answered(await fetch(`${url}/e2b/v2/sandboxes`, { method: "POST", headers, body }));
  const { sandboxID, envdAccessToken } = JSON.parse(made) as { sandboxID: string; envdAccessToken: string };
  await answered(
    await fetch(`${url}/e2b/process.Process/Start`, {
      method: "POST",
      headers: {
        "content-type": "application/connect+json",
        ...{ "e2b-sandbox-id": sandboxID, "e2b-sandbox-port": "49983", "x-access-token": envdAccessToken },
      },
      body: framed({ process: { cmd: "/bin/sh", args: ["-c", "true"] } }),
    }),
  );
  return () => fetch(`${url}/e2b/sandboxes/${sandboxID}`, { method: "DELETE", headers });
}

async function answered(answer: Response): Promise<string> {
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.status}: ${text}`);
  return text;
}

/** A message of a stream in the Connect protocol. */
function framed(message: object): Buffer {
  const body = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}
