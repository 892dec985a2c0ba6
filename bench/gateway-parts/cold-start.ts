/** The first request to an agent of which nothing runs, beside the same program started by hand. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { deploySuite, isDeployed } from "../../test/deploy-suite.ts";
import { machineSkip } from "../../test/sandbox-suite.ts";
import { percentiles, table } from "../measure.ts";

const PROGRAM = `require("node:http").createServer((request, response) => response.end("here")).listen(process.env.PORT, process.env.HOST);`;
const TRY_MS = 2;

export async function coldStart(rounds: number): Promise<void> {
  if (machineSkip) {
    console.log(`cold start: skipped; ${machineSkip}`);
    return;
  }
  const suite = deploySuite({ idle_after: "1", pool_size: "0" });
  const times: Record<"byHand" | "cold" | "warm", number[]> = { byHand: [], cold: [], warm: [] };
  const timed = async (into: number[], work: () => Promise<unknown>): Promise<void> => {
    const at = performance.now();
    await work();
    into.push(performance.now() - at);
  };
  const answer = async (): Promise<void> => {
    const response = await suite.ask("cold");
    if (!response.ok) throw new Error(await response.text());
    await response.text();
  };
  await suite.start();
  try {
    // The default: a whole core. With less memory comes less of the machine, and the start takes longer.
    await suite.create("cold", { "index.js": PROGRAM }, { runtime: { memory: 2048 } });
    await suite.reaches("cold", isDeployed);
    await suite.untilCopies("cold", 0);
    for (let round = 0; round < rounds; round += 1) {
      await timed(times.byHand, byHand);
      await timed(times.cold, answer);
      await timed(times.warm, answer);
      await suite.untilCopies("cold", 0);
    }
    const floor = percentiles(times.byHand).p50Ms;
    const row = (what: string, all: number[]): Record<string, string | number> => {
      const { p50Ms, p95Ms } = percentiles(all);
      return { what, p50Ms, p95Ms, "of by hand": p50Ms / floor };
    };
    table(`Cold start of a Node agent, ${rounds} rounds (idle: no process, no memory)`, [
      row("node by hand, to its first answer", times.byHand),
      row("agent from zero, to its first answer", times.cold),
      row("agent that runs", times.warm),
    ]);
  } finally {
    await suite.stop();
  }
}

async function byHand(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "berth-cold-"));
  const port = await freePort();
  let child: ChildProcess | null = null;
  try {
    writeFileSync(join(dir, "index.js"), PROGRAM);
    child = spawn(process.execPath, ["index.js"], {
      cwd: dir,
      stdio: "ignore",
      env: { PORT: String(port), HOST: "127.0.0.1" },
    });
    for (;;) {
      const response = await fetch(`http://127.0.0.1:${port}/`).catch(() => null);
      if (response) return void (await response.text());
      await pause(TRY_MS);
    }
  } finally {
    child?.kill("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
