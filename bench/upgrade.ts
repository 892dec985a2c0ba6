/**
 * How long clients wait while a server is replaced: by `berth upgrade`, and by a stop and a start of the same version,
 * which is the reference of the same run. A client asks again as soon as it is answered or refused; what is told is the
 * longest time between two answers, and how many requests failed. Both run from copies of this tree.
 *
 *   npm run bench -- upgrade [--rounds=5]
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runBerth, type ServerProcess, startServer } from "../test/berth-process.ts";
import { freePort } from "../test/free-port.ts";
import { makeTree } from "../test/installed/version-trees.ts";
import { percentiles, table } from "./measure.ts";

const ROOT = join(import.meta.dirname, "..");
const ASK_MS = 2;

export async function run(flags: string[]): Promise<void> {
  const rounds = Number(flags.find((each) => each.startsWith("--rounds="))?.split("=")[1] ?? 5);
  const folder = mkdtempSync(join(tmpdir(), "bench-upgrade-"));
  try {
    const base = makeTree(ROOT, join(folder, "base"), "1.0.0");
    const next = makeTree(base, join(folder, "next"), "1.0.1");
    const rows = [
      await measured("stop and start", rounds, folder, base, async (server, again) => {
        await server.stop();
        return again();
      }),
      await measured("berth upgrade", rounds, folder, base, async (server, _again, dataDir) => {
        const { code, stderr } = await runBerth(["upgrade", "--to", next, "--data", dataDir], { root: base });
        if (code !== 0) throw new Error(stderr);
        return server;
      }),
    ];
    const [restart, upgrade] = rows as [Row, Row];
    table("a server is replaced", rows as unknown as Record<string, string | number>[]);
    console.log(
      `\nlongest wait, upgrade against restart: ${(upgrade["longest wait ms"] / restart["longest wait ms"]).toFixed(2)}`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Row {
  way: string;
  "longest wait ms": number;
  "failed requests": number;
}

type Replace = (server: ServerProcess, again: () => Promise<ServerProcess>, dataDir: string) => Promise<ServerProcess>;

async function measured(way: string, rounds: number, folder: string, root: string, replace: Replace): Promise<Row> {
  const dataDir = join(folder, way.replaceAll(" ", "-"));
  mkdirSync(dataDir);
  const port = await freePort();
  const again = () => startServer({ dataDir, root, args: ["--port", String(port)], env: { BERTH_POOL_SIZE: "0" } });
  let server = await again();
  const [waits, failed]: [number[], { count: number }] = [[], { count: 0 }];
  try {
    for (let round = 0; round < rounds; round++) {
      const client = startClient(`http://127.0.0.1:${port}/healthz`, failed);
      server = await replace(server, again, dataDir);
      waits.push(await client.stop());
    }
  } finally {
    await server.stop();
  }
  return { way, "longest wait ms": percentiles(waits).p50Ms, "failed requests": failed.count / rounds };
}

/** Its longest time between two answers is told at the end. */
function startClient(url: string, failed: { count: number }): { stop(): Promise<number> } {
  let [stopped, longestMs, lastMs] = [false, 0, performance.now()];
  const loop = (async () => {
    while (!stopped) {
      const ok = await fetch(url, { headers: { connection: "close" } }).then(
        (answer) => answer.text().then(() => answer.ok),
        () => false,
      );
      if (!ok) failed.count += 1;
      else {
        longestMs = Math.max(longestMs, performance.now() - lastMs);
        lastMs = performance.now();
      }
      await new Promise((resolve) => setTimeout(resolve, ASK_MS));
    }
  })();
  return {
    async stop() {
      stopped = true;
      await loop;
      return longestMs;
    },
  };
}
