/**
 * What a sandbox costs through the API: from the create request to the answer of the first command, with bare `unshare`,
 * a bare child process, direct file access and `docker run` (where Docker and its debian image are) as references of the
 * same run, since absolute numbers mean little on a busy machine. Needs Linux; root for the strongest isolation.
 *
 *   npm run bench -- sandbox [--rounds=40] [--burst=100] [--many=300]
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { percentiles, table } from "./measure.ts";
import { type BenchPlatform, startBenchPlatform } from "./sandbox-parts/platform.ts";

const POOL_SIZE = 4;
const LARGE_BYTES = 100 * 1024 * 1024;
const LARGE_ROUNDS = 5;
const STANDBY_ROUNDS = 10;
const WARM_UP = 30;
/** A daemon gives memory back after three seconds without a request. */
const REST_MS = 5_000;
/** Creates at once beside those of the burst: more would only queue for the processor. */
const CREATES_AT_ONCE = 8;

export async function run(flags: string[]): Promise<void> {
  const flag = (name: string, otherwise: number): number =>
    Number(flags.find((each) => each.startsWith(`--${name}=`))?.split("=")[1] ?? otherwise);
  const rounds = flag("rounds", 40);
  const load = (): string => loadavg()[0]?.toFixed(1) ?? "?";
  console.log(`load of the machine at the start: ${load()}`);
  const pooled = await startBenchPlatform({ BERTH_POOL_SIZE: String(POOL_SIZE) });
  const cold = await startBenchPlatform({ BERTH_POOL_SIZE: "0", BERTH_STANDBY_AFTER: "1" });
  try {
    await starts(pooled, cold, rounds);
    await oneSandbox(pooled, rounds);
    await standby(cold);
  } finally {
    await pooled.stop();
    await cold.stop();
  }
  const burst = flag("burst", 100);
  const large = await startBenchPlatform({ BERTH_POOL_SIZE: String(burst) });
  try {
    await bursts(large, burst, flag("many", 300));
  } finally {
    await large.stop();
  }
  console.log(`\nload of the machine at the end: ${load()}`);
}

type Times = Record<string, number[]>;

const timer =
  (times: Times) =>
  async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const at = performance.now();
    const result = await work();
    times[name] = [...(times[name] ?? []), performance.now() - at];
    return result;
  };

const createAndExec = async (platform: BenchPlatform): Promise<string> => {
  const name = await platform.create();
  await platform.exec(name, "true");
  return name;
};

async function starts(pooled: BenchPlatform, cold: BenchPlatform, rounds: number): Promise<void> {
  const times: Times = {};
  const time = timer(times);
  await cold.remove(await createAndExec(cold));
  // Interleaved: whatever else the machine does meets all of them alike.
  for (let round = 0; round < rounds; round++) {
    await pooled.stocked(POOL_SIZE);
    await time("unshare, all namespaces: true", () => child("unshare", ["-mpfnui", "--mount-proc", "true"]));
    if (hasDocker)
      await time("docker run: true", () => child("docker", ["run", "--rm", "--network=none", "debian", "true"]));
    await pooled.remove(await time("pooled: create + exec true", () => createAndExec(pooled)));
    await cold.remove(await time("cold: create + exec true", () => createAndExec(cold)));
  }
  report("from create to the answer of the first command (ms)", times);
  if (!hasDocker) console.log("docker run: skipped; needs Docker and its debian image (docker pull debian)");
}

async function oneSandbox(platform: BenchPlatform, rounds: number): Promise<void> {
  const sandbox = await platform.create();
  const [commands, small, large]: [Times, Times, Times] = [{}, {}, {}];
  const [kilobyte, megabytes] = [Buffer.alloc(1024, 1), Buffer.alloc(LARGE_BYTES, 1)];
  const here = join(platform.dataDir, "direct");
  const inside = "/filesystem/%2Froot%2Ffile";
  const files = async (time: ReturnType<typeof timer>, bytes: Buffer): Promise<void> => {
    await time("direct write", async () => writeFileSync(here, bytes));
    await time("direct read", async () => readFileSync(here));
    await time("write through the API", () => platform.inside(sandbox, "PUT", inside, bytes));
    const got = await time("read through the API", () => platform.inside(sandbox, "GET", inside));
    if (got !== bytes.length) throw new Error(`read ${got} bytes of ${bytes.length}`);
  };
  for (let round = 0; round < rounds; round++) {
    const time = timer(commands);
    await time("child process: sh -c true", () => child("sh", ["-c", "true"]));
    await time("exec true", () => platform.exec(sandbox, "true"));
    await files(timer(small), kilobyte);
  }
  for (let round = 0; round < LARGE_ROUNDS; round++) await files(timer(large), megabytes);
  report("one command (ms)", commands);
  report("a file of 1 KB (ms)", small);
  report("a file of 100 MB (ms)", large);
  await platform.remove(sandbox);
}

async function standby(platform: BenchPlatform): Promise<void> {
  const sandbox = await createAndExec(platform);
  const times: Times = { "awake: health": [], "asleep: thaw + health": [] };
  const time = timer(times);
  for (let round = 0; round < STANDBY_ROUNDS; round++) {
    while ((await platform.state(sandbox)) !== "STANDBY") await pause(50);
    await time("asleep: thaw + health", () => platform.inside(sandbox, "GET", "/health"));
    await time("awake: health", () => platform.inside(sandbox, "GET", "/health"));
  }
  report("standby (ms)", times);
  await platform.remove(sandbox);
}

async function bursts(platform: BenchPlatform, burst: number, many: number): Promise<void> {
  // A server that has just started is slow at everything; the other measurements have a round before them too.
  await inTurn(CREATES_AT_ONCE, WARM_UP, async () => platform.remove(await createAndExec(platform)));
  await platform.stocked(burst);
  const times: Times = {};
  const names = await Promise.all(
    Array.from({ length: burst }, () => timer(times)(`burst of ${burst}`, () => createAndExec(platform))),
  );
  report(`${burst} at once, create + exec, all answered (ms)`, times);
  const from = performance.now();
  await inTurn(CREATES_AT_ONCE, Math.max(0, many - names.length), async () => {
    names.push(await createAndExec(platform));
  });
  const createdMs = performance.now() - from;
  const alive: Times = {};
  await inTurn(CREATES_AT_ONCE, names.length, (n) =>
    timer(alive)(`exec in each of ${names.length}`, () => platform.exec(names[n] ?? "", "true")),
  );
  report(`${names.length} sandboxes at once (ms)`, alive);
  await pause(REST_MS);
  const sizes = platform.memory().map((bytes) => bytes / 1024 / 1024);
  table("memory charged to each, at rest", [
    {
      sandboxes: sizes.length,
      "created per second": (names.length - burst) / (createdMs / 1000),
      "MB each, p50": percentiles(sizes).p50Ms,
      "MB each, largest": Math.max(...sizes),
    },
  ]);
  await inTurn(CREATES_AT_ONCE, names.length, (n) => platform.remove(names[n] ?? ""));
}

async function inTurn(atOnce: number, count: number, one: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await one(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

/** Ratios are to the first row. */
function report(title: string, times: Times): void {
  const floor = percentiles(Object.values(times)[0] ?? []).p50Ms;
  const rows = Object.entries(times).map(([name, values]) => {
    const { p50Ms, p95Ms, p99Ms } = percentiles(values);
    return { name, p50: p50Ms, p95: p95Ms, p99: p99Ms, "p50 / first": p50Ms / floor };
  });
  table(title, rows);
}

async function child(program: string, args: string[]): Promise<void> {
  await once(spawn(program, args, { stdio: "ignore" }), "close");
}

const hasDocker = ((): boolean => {
  try {
    execFileSync("docker", ["image", "inspect", "debian"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();
