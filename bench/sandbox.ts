/**
 * What a sandbox costs on this machine, with bare `unshare` and a bare child process as floors in the same run, since
 * absolute numbers mean little on a busy machine. Needs Linux; root for the strongest isolation.
 *
 *   npm run bench -- sandbox [--rounds=40] [--burst=100]
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call } from "../src/runtime/conformance.ts";
import type { Observed, WorkloadSpec } from "../src/runtime/driver.ts";
import { type LocalDriver, openLocalDriver } from "../src/runtime/drivers/local/local-driver.ts";
import { cachedSandboxd } from "../src/runtime/sandboxd-build.ts";
import { percentiles, table } from "./measure.ts";

const POOL_SIZE = 10;

export async function run(flags: string[]): Promise<void> {
  const rounds = flag(flags, "rounds", 40);
  const burst = flag(flags, "burst", 100);
  const dataDir = mkdtempSync(join(tmpdir(), "bench-"));
  const sandboxd = await cachedSandboxd(join(tmpdir(), "berth-sandboxd"));
  const base = { dataDir, brand: "berth", sandboxd, nodeBinary: process.execPath };
  const driver = await openLocalDriver({ ...base, poolSize: POOL_SIZE });
  try {
    const { grade, outbound } = await driver.probe();
    console.log(`isolation grade ${grade}, outbound by ${outbound}`);
    await starts(driver, rounds);
    await oneSandbox(driver, rounds);
    await memory(driver);
    await driver.stop("kill");
    const large = await openLocalDriver({ ...base, poolSize: burst });
    await bursts(large, burst);
    await large.stop("kill");
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

let counter = 0;
const spec = (more: Partial<WorkloadSpec> = {}): WorkloadSpec => ({
  uid: `bench-${counter++}`,
  name: "bench",
  image: "berth/base-image:latest",
  env: { GREETING: "hello" },
  limits: { memoryMb: 4096, cpus: 2 },
  network: "outbound",
  ...more,
});

async function starts(driver: LocalDriver, rounds: number): Promise<void> {
  const times: Record<string, number[]> = {};
  const time = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    const at = performance.now();
    await work();
    times[name] = [...(times[name] ?? []), performance.now() - at];
  };
  // Interleaved: whatever else the machine does meets all of them alike.
  for (let round = 0; round < rounds; round++) {
    await driver.stocked();
    await time("child process: true", () => child("true", []));
    await time("unshare, all namespaces: true", () => child("unshare", ["-mpfnui", "--mount-proc", "true"]));
    if (hasDocker)
      await time("docker run: true", () => child("docker", ["run", "--rm", "--network=none", "debian", "true"]));
    const pooled = spec();
    await time("pooled create + exec true", async () => exec(await driver.create(pooled), "true"));
    const cold = spec({ workDir: "/tmp", exec: { argv: ["sleep", "600"] } });
    await time("cold create of a command", () => driver.create(cold));
    for (const { uid } of [pooled, cold]) await time("destroy", () => driver.destroy(uid));
  }
  const floor = percentiles(times["unshare, all namespaces: true"] ?? []).p50Ms;
  report("start (ms)", times, floor);
}

async function oneSandbox(driver: LocalDriver, rounds: number): Promise<void> {
  const made = await driver.create(spec());
  const times: Record<string, number[]> = {
    "child process: true": [],
    "exec true": [],
    health: [],
    "thaw + health": [],
  };
  for (let round = 0; round < rounds; round++) {
    times["child process: true"]?.push(await timed(() => child("true", [])));
    times["exec true"]?.push(await timed(() => exec(made, "true")));
    times.health?.push(await timed(() => call(made, "/health")));
    await driver.freeze(made.uid);
    times["thaw + health"]?.push(
      await timed(async () => {
        await driver.thaw(made.uid);
        await call(made, "/health");
      }),
    );
  }
  report("one sandbox (ms)", times, percentiles(times["child process: true"] ?? []).p50Ms);
  await driver.destroy(made.uid);
}

async function memory(driver: LocalDriver): Promise<void> {
  await driver.stocked();
  const made: Observed[] = [];
  for (let index = 0; index < POOL_SIZE; index++) made.push(await driver.create(spec()));
  const sizes = await Promise.all(made.map(async ({ uid }) => (await driver.stats(uid)).memoryBytes / 1024 / 1024));
  table("memory charged to one idle sandbox (MB)", [{ p50: percentiles(sizes).p50Ms, largest: Math.max(...sizes) }]);
  for (const { uid } of made) await driver.destroy(uid);
}

async function bursts(driver: LocalDriver, count: number): Promise<void> {
  await driver.stocked();
  const times: number[] = [];
  const from = performance.now();
  await Promise.all(
    Array.from({ length: count }, async () => {
      await exec(await driver.create(spec()), "true");
      times.push(performance.now() - from);
    }),
  );
  report(`burst of ${count} at once, create + exec (ms)`, { pooled: times }, percentiles(times).p50Ms);
}

function report(title: string, times: Record<string, number[]>, floorMs: number): void {
  const rows = Object.entries(times).map(([name, values]) => {
    const { p50Ms, p95Ms, p99Ms } = percentiles(values);
    return { name, p50: p50Ms, p95: p95Ms, p99: p99Ms, "p50 / floor": p50Ms / floorMs };
  });
  table(title, rows);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const at = performance.now();
  await work();
  return performance.now() - at;
}

async function child(program: string, args: string[]): Promise<void> {
  await once(spawn(program, args, { stdio: "ignore" }), "close");
}

async function exec(sandbox: Observed, command: string): Promise<void> {
  const { status, text } = await call(sandbox, "/process", {
    method: "POST",
    body: { command, waitForCompletion: true },
  });
  if (status !== 200) throw new Error(`${status} ${text}`);
}

const flag = (flags: string[], name: string, otherwise: number): number =>
  Number(flags.find((each) => each.startsWith(`--${name}=`))?.split("=")[1] ?? otherwise);

const hasDocker = ((): boolean => {
  try {
    execFileSync("docker", ["image", "inspect", "debian"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();
