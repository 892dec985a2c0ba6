/**
 * Many sandboxes on one machine that keep only a few in memory: `--known` sandboxes in gVisor, of which the machine is
 * told to keep about `--hot` in memory. Each is asked once, in random order, wherever it is. Then `--forks` copies of one
 * snapshot of memory, until all have answered, beside as many bare `runsc restore` of the same run. Needs root and gVisor.
 *
 *   npm run bench -- density [--known=40] [--hot=8] [--forks=20] [--each-mb=80]
 *   npm run bench -- density --known=2000 --hot=300 --forks=100     # on 24 GB
 */
import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { lookAtMemory } from "../src/lib/memory-look.ts";
import { cgroupStats } from "../src/node/drivers/local/machine/cgroup.ts";
import { loadRecords } from "../src/node/drivers/local/workload/record.ts";
import { provideRunsc } from "../test/gvisor/binary.ts";
import { bareRestores } from "./density-parts/bare-restore.ts";
import { percentiles, table } from "./measure.ts";
import { type BenchPlatform, startBenchPlatform } from "./sandbox-parts/platform.ts";
import { openRawClient } from "./sandbox-parts/raw-client.ts";

const MB = 2 ** 20;
const COPIES_MAX = 100;
/** Beats every 5 ms, and writes down the longest time between two beats. */
const PROGRAM = `
const { existsSync, rmSync, writeFileSync } = require("fs");
let last = performance.now(), longest = 0;
setInterval(() => {
  const now = performance.now();
  if (existsSync("/asked")) { rmSync("/asked"); longest = 0; }
  if (now - last > longest) writeFileSync("/pause", String((longest = now - last)));
  last = now;
}, 5);`;
/** Longest wait for sandboxes to reach the disk. */
const SINK_WAIT_MS = 600_000;

export async function run(flags: string[]): Promise<void> {
  const flag = (name: string, otherwise: number): number =>
    Number(flags.find((each) => each.startsWith(`--${name}=`))?.split("=")[1] ?? otherwise);
  const [known, hot] = [flag("known", 20 * availableParallelism()), flag("hot", 4 * availableParallelism())];
  const runsc = provideRunsc(["gvisor"]);
  if (runsc === "none") return;
  const freeMb = Math.floor((lookAtMemory()?.availableBytes ?? 0) / MB);
  const platform = await startBenchPlatform({
    ...{ BERTH_RUNSC: runsc, BERTH_POOL_SIZE: "0", BERTH_STANDBY_AFTER: "2" },
    BERTH_MEMORY_FREE_MIN: String(Math.max(1, freeMb - hot * flag("each-mb", 80))),
  });
  try {
    const bench = new Bench(platform);
    const source = await bench.source();
    await bench.fill(source, known);
    await bench.askEach(hot);
    await bench.forks(source, flag("forks", 10 * availableParallelism()), runsc);
  } finally {
    await platform.stop();
  }
}

class Bench {
  readonly #platform: BenchPlatform;
  readonly #client: ReturnType<typeof openRawClient>;
  #names: string[] = [];

  constructor(platform: BenchPlatform) {
    this.#platform = platform;
    this.#client = openRawClient(platform.url, {
      authorization: `Bearer ${platform.apiKey}`,
      "service-version": "2026-04-28",
    });
  }

  /** A sandbox with one program, and the snapshot of its memory. */
  async source(): Promise<string> {
    const runtime = { memory: 512, isolation: "vm-like" };
    await this.#post("", { metadata: { name: "source" }, spec: { runtime } });
    await this.#platform.exec("source", `(node -e '${PROGRAM}' >/dev/null 2>&1 &); sleep 1`);
    const times: number[] = [];
    const pauses: number[] = [];
    let id = "";
    for (let round = 0; round < 3; round++) {
      const at = performance.now();
      ({ id } = await this.#post<{ id: string }>("/source/snapshots", { memory: true }));
      times.push(performance.now() - at);
      pauses.push(await this.#pause());
    }
    const shown = (all: number[]): string => all.map((ms) => ms.toFixed(0)).join(" ");
    const rows = [{ "ms to the answer": shown(times), "ms that the program stood still": shown(pauses) }];
    table("snapshots of memory of one running sandbox (a Node program)", rows);
    return id;
  }

  async fill(snapshotId: string, known: number): Promise<void> {
    const at = performance.now();
    for (let made = 0; made < known; made += COPIES_MAX) {
      const targetName = `k${made}`;
      const copies = Math.min(COPIES_MAX, known - made);
      const answer = await this.#post<Forked>("/source/fork", { targetName, copies, snapshotId });
      this.#names.push(...answer.copies.map(nameOf));
    }
    console.log(`\n${known} sandboxes made in ${((performance.now() - at) / 1000).toFixed(1)} s`);
  }

  async askEach(hot: number): Promise<void> {
    const deadline = Date.now() + SINK_WAIT_MS;
    const wanted = Math.max(0, this.#names.length - 2 * hot);
    while (this.#records().filter(({ hibernated }) => hibernated).length < wanted && Date.now() < deadline)
      await pause(500);
    this.#show("before the requests");
    const times: Record<string, number[]> = {};
    for (const name of shuffled(this.#names)) {
      const where = this.#where(name);
      const at = performance.now();
      await this.#platform.exec(name, "true");
      times[where] = [...(times[where] ?? []), performance.now() - at];
    }
    const rows = Object.entries(times).map(([where, ms]) => {
      const { p50Ms, p95Ms, p99Ms } = percentiles(ms);
      return { where, asked: ms.length, "p50 ms": p50Ms, "p95 ms": p95Ms, "p99 ms": p99Ms, "max ms": Math.max(...ms) };
    });
    table("one command in each, in random order", rows);
    this.#show("after the requests");
  }

  async forks(snapshotId: string, count: number, runsc: string): Promise<void> {
    const at = performance.now();
    const body = { targetName: "fork", copies: Math.min(count, COPIES_MAX), snapshotId };
    const { copies } = await this.#post<Forked>("/source/fork", body);
    const madeMs = performance.now() - at;
    await Promise.all(copies.map(({ name }) => this.#platform.exec(name, "true")));
    const answeredMs = performance.now() - at;
    const bare = await bareRestores(runsc, copies.length, availableParallelism());
    table(`${copies.length} copies of one snapshot`, [
      { what: "forked, all running", ms: madeMs },
      { what: "forked, all have run a command", ms: answeredMs },
      { what: "bare runsc restore of a Node program", ms: bare.allMs },
      { what: "ratio, running to bare", ms: madeMs / bare.allMs },
      { what: "bare restores that failed", ms: bare.failed },
      { what: "one bare restore, p50", ms: percentiles(bare.eachMs).p50Ms },
    ]);
  }

  /** The longest time between two beats of the program since it was last asked. */
  async #pause(): Promise<number> {
    const body = { command: "sleep 0.1; cat /pause; touch /asked", waitForCompletion: true };
    const { logs } = (await this.#client.ask("POST", "/main/sandboxes/source/process", body)) as { logs: string };
    return Number(logs);
  }

  #records() {
    return loadRecords(join(this.#platform.dataDir, "runtime/workloads")).flatMap(({ record }) => record ?? []);
  }

  #where(name: string): string {
    const record = this.#records().find((each) => each.name === name);
    return record?.hibernated ? "disk" : "memory";
  }

  #show(title: string): void {
    const records = this.#records();
    const there = records.filter(({ hibernated }) => !hibernated);
    const bytes = there.reduce((sum, { cgroup }) => sum + (cgroupStats(cgroup).memoryBytes ?? 0), 0);
    const folder = join(this.#platform.dataDir, "runtime/workloads");
    const disk = Number(execFileSync("du", ["-skc", folder]).toString().trimEnd().split("\n").at(-1)?.split("\t")[0]);
    table(title, [
      {
        "in memory": there.length,
        "on disk": records.length - there.length,
        "memory MB": bytes / MB,
        "disk MB": disk / 1024,
      },
    ]);
  }

  #post<T>(path: string, body: object): Promise<T> {
    return this.#client.ask("POST", `/v0/sandboxes${path}`, body) as Promise<T>;
  }
}

interface Forked {
  copies: { name: string }[];
}

const nameOf = ({ name }: { name: string }): string => name;

/** The same order in every run. */
function shuffled(names: readonly string[]): string[] {
  let seed = 1;
  const next = (): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed;
  };
  return names
    .map((name) => ({ name, at: next() }))
    .sort((a, b) => a.at - b.at)
    .map(nameOf);
}
