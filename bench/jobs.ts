/**
 * What running a task costs beside its process, against references of the same run:
 *
 *   tasks     tasks/s of a task that does nothing, against `xargs -P` that runs the same program with the same launcher
 *             in the same isolation, against `xargs -P unshare`, and against the driver alone
 *   dispatch  from the request that creates an execution to the start of its process
 *   queue     claims and ends of tasks on PostgreSQL, nothing started, against pg-boss on the same server
 *   scale     a create of 100,000 tasks over HTTP, what it leaves in memory, and reads of such an execution
 *   growth    the same for 1,000 to 100,000 tasks; how long their create takes; a look at 10,000 executions that wait
 *
 *   npm run bench -- jobs [--tasks=200] [--only=tasks,queue] [--pg-boss=DIR]
 *
 * The queue needs a PostgreSQL (BERTH_TEST_POSTGRES, or binaries on this machine); the tasks need Linux, and root for
 * the strongest isolation. pg-boss is installed into a temporary folder unless one is given that has it.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { openLocalDriver } from "../src/node/drivers/local/local-driver.ts";
import { cachedSandboxd } from "../src/node/sandboxd-build.ts";
import { unlockWith } from "../src/store/sealing/key-records.ts";
import { openStore, type Store } from "../src/store/store.ts";
import { startTestPlatform } from "../test/platform.ts";
import { createDatabase, startPostgres } from "../test/postgres.ts";
import { openIsolatedXargs } from "./jobs-parts/isolated-xargs.ts";
import { percentiles, table } from "./measure.ts";

const AT_ONCE = availableParallelism() * 4;
const ROUNDS = 3;
const DISPATCHES = 30;
/** Tasks that a worker takes and gives back together, on both sides. */
const BATCH = 50;
const QUEUED = 10_000;
const WORKERS = 2;
const GROWTH = [1_000, 10_000, 100_000];
const WAITING = 10_000;
const SCALE = 100_000;
const CREATES = 10;
const LOOKS = 20;

export async function run(flags: string[]): Promise<void> {
  const flag = (name: string): string | undefined =>
    flags.find((each) => each.startsWith(`--${name}=`))?.slice(name.length + 3);
  const only = flag("only")?.split(",");
  const wanted = (part: string): boolean => only === undefined || only.includes(part);
  if (wanted("tasks") || wanted("dispatch")) await tasks(Number(flag("tasks") ?? 200), wanted);
  if (!wanted("queue") && !wanted("growth") && !wanted("scale")) return;
  const postgres = await startPostgres();
  if ("reason" in postgres) return console.log(`queue: skipped; ${postgres.reason}`);
  try {
    if (wanted("scale")) await scale(postgres.url);
    if (wanted("queue")) await queues(postgres.url, flag("pg-boss"));
    if (wanted("growth")) await growth(postgres.url);
  } finally {
    await postgres.stop();
  }
}

async function tasks(count: number, wanted: (part: string) => boolean): Promise<void> {
  const config = { pool_size: "0", job_slots: String(AT_ONCE), job_memory: "100000" };
  const platform = await startTestPlatform({ driver: "real", config });
  const runtime = {
    image: "service/base-image:latest",
    command: ["true"],
    memory: 128,
    maxConcurrentTasks: 2 * AT_ONCE,
  };
  try {
    const made = await platform.call("POST", "/jobs", { body: { metadata: { name: "noop" }, spec: { runtime } } });
    if (made.status !== 200) throw new Error(JSON.stringify(made.body));
    const execute = async (length: number) => {
      const body = { tasks: Array.from({ length }, () => ({})) };
      const { executionId } = (await platform.call("POST", "/jobs/noop/executions", { body })).body;
      for (;;) {
        const { body: read } = await platform.call("GET", `/jobs/noop/executions/${executionId}?inlineTasks=true`);
        if (!read.metadata.completedAt) await new Promise((resolve) => setTimeout(resolve, 10));
        else if (read.status === "succeeded") return read;
        else throw new Error(JSON.stringify(read.tasks[0]));
      }
    };
    await execute(AT_ONCE); // once for nothing
    if (wanted("tasks")) await throughput(count, () => execute(count));
    if (wanted("dispatch")) {
      const times: number[] = [];
      for (let n = 0; n < DISPATCHES; n += 1) {
        const { metadata, tasks: ended } = await execute(1);
        times.push(Date.parse(ended[0].metadata.startedAt) - Date.parse(metadata.createdAt));
      }
      const { p50Ms, p95Ms } = percentiles(times);
      table("From create to the start of the process, on an idle queue (ms)", [{ p50: p50Ms, p95: p95Ms }]);
    }
  } finally {
    await platform.stop();
  }
}

/** In turns, so that whatever else the machine does hits all of them. */
async function throughput(count: number, execute: () => Promise<unknown>): Promise<void> {
  const isolated = await openIsolatedXargs(AT_ONCE, ["true"], await cachedSandboxd(join(tmpdir(), "berth-sandboxd")));
  const rates: Record<"job" | "driver" | "isolated" | "bare", number[]> = {
    job: [],
    driver: [],
    isolated: [],
    bare: [],
  };
  try {
    await withDriver(async (one) => {
      for (let round = 0; round < ROUNDS; round += 1) {
        rates.isolated.push(await perSecond(count, () => isolated.run(count)));
        rates.job.push(await perSecond(count, execute));
        rates.bare.push(await perSecond(count, async () => xargs(count)));
        rates.driver.push(await perSecond(count, () => inTurns(count, (n) => one(round * count + n))));
      }
    });
  } finally {
    await isolated.close();
  }
  const middle = (all: number[]): number => percentiles(all).p50Ms;
  const reference = middle(rates.isolated);
  const row = (what: string, all: number[]) => ({
    what,
    "per second": middle(all),
    "of xargs, same isolation": middle(all) / reference,
    "of xargs, bare namespaces": middle(all) / middle(rates.bare),
  });
  table(`A task that does nothing, ${AT_ONCE} at a time (median of ${ROUNDS} rounds of ${count})`, [
    row("xargs -P, unshare alone", rates.bare),
    row("xargs -P, the same isolation", rates.isolated),
    row("the driver alone", rates.driver),
    row("tasks of a job", rates.job),
  ]);
}

function xargs(count: number): void {
  const isolated = ["unshare", "-mpfnui", "--mount-proc", "true"];
  execFileSync("xargs", ["-P", String(AT_ONCE), "-I{}", ...isolated], { input: "x\n".repeat(count) });
}

/** One workload from its start to the last trace of it. */
async function withDriver<T>(work: (one: (n: number) => Promise<void>) => Promise<T>): Promise<T> {
  const dataDir = mkdtempSync(join(tmpdir(), "bench-jobs-"));
  const sandboxd = await cachedSandboxd(join(tmpdir(), "berth-sandboxd"));
  const driver = await openLocalDriver({ dataDir, brand: "berth", sandboxd, nodeBinary: process.execPath });
  try {
    return await work(async (n) => {
      const limits = { memoryMb: 128, cpus: 0.25 };
      const box = { uid: `noop-${n}`, name: "noop", image: "berth/base-image:latest", env: {}, limits };
      await driver.create({ ...box, network: "outbound", exec: { argv: ["true"], alone: true } });
      await driver.waitExit(box.uid);
      await driver.destroy(box.uid);
    });
  } finally {
    await driver.stop("kill");
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function inTurns(count: number, one: (n: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await one(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** The platform in a process of its own would only add the same to all of it; nothing is started but one task. */
async function scale(serverUrl: string): Promise<void> {
  const rows: Record<string, string | number>[] = [];
  for (const [database, url] of [["SQLite", null] as const, ["PostgreSQL", serverUrl] as const]) {
    const databaseUrl = url === null ? null : await createDatabase(url);
    const platform = await startTestPlatform({ databaseUrl, config: { job_slots: "1" } });
    try {
      const runtime = { image: "service/base-image:latest", command: ["sleep", "600"], memory: 128 };
      await platform.call("POST", "/jobs", { body: { metadata: { name: "many" }, spec: { runtime } } });
      const body = JSON.stringify({ tasks: Array.from({ length: SCALE }, (_, page) => ({ page })) });
      const [creates, memory, reads]: number[][] = [[], [], []];
      for (let n = 0; n < CREATES; n += 1) {
        const at = performance.now();
        const made = await platform.call("POST", "/jobs/many/executions", { body });
        creates?.push(performance.now() - at);
        if (made.status !== 200) throw new Error(JSON.stringify(made.body));
        globalThis.gc?.();
        memory?.push(process.memoryUsage().rss / 2 ** 20);
        const asked = performance.now();
        await platform.call("GET", `/jobs/many/executions/${made.body.executionId}?inlineTasks=false`);
        reads?.push(performance.now() - asked);
      }
      const [first = 0, last = 0] = [memory?.[1], memory?.at(-1)];
      rows.push({
        database,
        "create p50 ms": percentiles(creates ?? []).p50Ms,
        "create max ms": Math.max(...(creates ?? [])),
        "read p50 ms": percentiles(reads ?? []).p50Ms,
        "RSS growth of 8 more, MB": last - first,
      });
    } finally {
      await platform.stop();
    }
  }
  table(`Create of ${SCALE} tasks over HTTP`, rows);
}

async function queues(serverUrl: string, given: string | undefined): Promise<void> {
  const [ours, theirs]: [QueueRun[], QueueRun[]] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    ours.push(await withStore(serverUrl, (store) => ourQueue(store, QUEUED)));
    const boss = await pgBoss(serverUrl, given).catch((error: unknown) => {
      console.log(`pg-boss: skipped; ${error instanceof Error ? error.message : String(error)}`);
      return null;
    });
    if (boss) theirs.push(boss);
  }
  const middle = (runs: QueueRun[], of: keyof QueueRun): number => percentiles(runs.map((run) => run[of])).p50Ms;
  const row = (what: string, runs: QueueRun[]) => ({
    what,
    "create ms": middle(runs, "create ms"),
    "per second": middle(runs, "per second"),
    "of pg-boss": middle(runs, "per second") / middle(theirs, "per second"),
  });
  table(
    `${QUEUED} tasks through the queue on PostgreSQL, ${WORKERS} workers, ${BATCH} at a time (median of ${ROUNDS})`,
    [row("tasks of one execution", ours), ...(theirs.length > 0 ? [row("pg-boss", theirs)] : [])],
  );
}

interface QueueRun {
  "create ms": number;
  "per second": number;
}

const RULES = { retryAfterMs: () => 1000, keepMs: 60_000 };

async function ourQueue(store: Store, count: number): Promise<QueueRun> {
  const at = performance.now();
  const { id } = await store.executions.create(draft("bench", count));
  const createMs = performance.now() - at;
  const worker = async (): Promise<void> => {
    for (;;) {
      const claims = await store.executions.claim(id, "bench", 60_000, BATCH);
      if (claims.length === 0) return;
      const outcome = { result: "succeeded" } as const;
      await store.executions.report(
        id,
        claims.map(({ index, attempt }) => ({ index, attempt, outcome })),
        RULES,
      );
    }
  };
  const rate = await perSecond(count, () => Promise.all(Array.from({ length: WORKERS }, worker)));
  const row = await store.executions.getAcrossWorkspaces(id);
  if (row?.success !== count) throw new Error(`only ${row?.success} of ${count} went through`);
  return { "create ms": createMs, "per second": rate };
}

interface Boss {
  start(): Promise<unknown>;
  stop(options?: object): Promise<unknown>;
  createQueue(name: string): Promise<unknown>;
  insert(...args: unknown[]): Promise<unknown>;
  fetch(name: string, options: { batchSize: number }): Promise<{ id: string }[] | null>;
  complete(name: string, ids: string[]): Promise<unknown>;
}

async function pgBoss(serverUrl: string, given: string | undefined): Promise<QueueRun> {
  const dir = given ?? mkdtempSync(join(tmpdir(), "bench-pg-boss-"));
  try {
    if (!existsSync(join(dir, "node_modules/pg-boss")))
      execFileSync("npm", ["install", "--prefix", dir, "--no-audit", "--no-fund", "pg-boss@10"], { stdio: "ignore" });
    const loaded = createRequire(join(dir, "index.js"))("pg-boss") as unknown;
    const Made = ((loaded as { default?: unknown }).default ?? loaded) as new (url: string) => Boss;
    const boss = new Made(await createDatabase(serverUrl));
    await boss.start();
    await boss.createQueue("bench");
    const at = performance.now();
    await boss.insert(Array.from({ length: QUEUED }, (_, n) => ({ name: "bench", data: { n } })));
    const createMs = performance.now() - at;
    const worker = async (): Promise<void> => {
      for (;;) {
        const jobs = (await boss.fetch("bench", { batchSize: BATCH })) ?? [];
        if (jobs.length === 0) return;
        await boss.complete(
          "bench",
          jobs.map(({ id }) => id),
        );
      }
    };
    const rate = await perSecond(QUEUED, () => Promise.all(Array.from({ length: WORKERS }, worker)));
    await boss.stop({ graceful: false });
    return { "create ms": createMs, "per second": rate };
  } finally {
    if (given === undefined) rmSync(dir, { recursive: true, force: true });
  }
}

async function growth(serverUrl: string): Promise<void> {
  for (const [name, url] of [["SQLite", null] as const, ["PostgreSQL", serverUrl] as const])
    await withStore(url, async (store) => {
      const rows: Record<string, string | number>[] = [];
      for (const count of GROWTH) {
        const before = process.memoryUsage().heapUsed;
        const ran = await ourQueue(store, count);
        rows.push({ tasks: count, ...ran, "heap MB": (process.memoryUsage().heapUsed - before) / 2 ** 20 });
      }
      table(`Growth on ${name}`, rows);
      for (let n = 0; n < WAITING; n += 1)
        await store.executions.create(draft(n % 2 === 0 ? "one" : `job-${n % 50}`, 3));
      const times: number[] = [];
      for (let n = 0; n < LOOKS; n += 1) {
        const at = performance.now();
        await store.executions.listClaimableAcrossWorkspaces(1000);
        times.push(performance.now() - at);
      }
      const { p50Ms, p95Ms } = percentiles(times);
      table(`A look at ${WAITING} executions that wait, on ${name} (ms)`, [{ p50: p50Ms, p95: p95Ms }]);
    });
}

const draft = (jobUid: string, count: number) => ({
  ...{ workspace: "main", jobUid, job: "bench", parallelism: 10_000, maxRetries: 0, timeoutS: 60, memoryMb: 128 },
  ...{ memoryOverride: null, env: {}, revision: "1", slot: null, cause: "api", createdBy: "bench" },
  tasks: Array.from({ length: count }, (_, n) => ({ n })),
});

async function withStore<T>(serverUrl: string | null, work: (store: Store) => Promise<T>): Promise<T> {
  const dataDir = mkdtempSync(join(tmpdir(), "bench-jobs-"));
  const databaseUrl = serverUrl === null ? null : await createDatabase(serverUrl);
  const store = await openStore({
    ...{ databaseUrl, dataDir, unlock: unlockWith(Buffer.alloc(32, 1)), clock: { now: Date.now } },
    onError: (error) => console.error(error),
  });
  try {
    const blank = { accountId: "a", displayName: "", region: "", labels: {}, groupMappings: [], runtime: {} };
    await store.write((tx) => store.workspaces.insert(tx, { name: "main", ...blank }, "bench"));
    return await work(store);
  } finally {
    await store.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function perSecond(count: number, work: () => Promise<unknown>): Promise<number> {
  const at = performance.now();
  await work();
  return (count * 1000) / (performance.now() - at);
}
