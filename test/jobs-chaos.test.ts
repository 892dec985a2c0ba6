/**
 * Servers, tasks and the database are killed at random moments while executions run. What the tasks themselves wrote
 * tells: none was lost, none ran twice at once, and the counters are exact.
 */

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type ChaosServer, startChaosServer } from "./jobs/chaos-process.ts";
import { runningTasks } from "./jobs/process-driver.ts";
import { LONG } from "./long.ts";
import { type Answer, type CallOptions, caller } from "./platform.ts";
import { createDatabase, startPrivatePostgres } from "./postgres.ts";

const KILLS = LONG ? 120 : 2;
const SEED = Number(process.env.BERTH_TEST_SEED ?? 20_261_115);
/** So often a new execution is started, so that there is always something to hit. */
const KILLS_PER_EXECUTION = LONG ? 2 : 1;
const TASKS = LONG ? 30 : 12;
/** Longer than a lease and the two leases that a task is left to its own machine. */
const ABSENT_MS = 14_000;
const TRIES = 3000;
const BUSY_TRIES = 500;

/** A task that finds another attempt of itself alive says so: the lock goes with the last process of that attempt. */
const TASK = `me="$BL_EXECUTION_ID/$TASK_INDEX"; exec 9> "$OUT.lock.$BL_EXECUTION_ID.$TASK_INDEX"
flock -n 9 || echo "twice $me" >> "$OUT"
echo "start $me" >> "$OUT"; sleep 0.2; echo "end $me" >> "$OUT"; exit $CODE`;

/** What becomes of an execution, whatever happens to it. */
const FATES = {
  steady: { maxRetries: 100, code: "0", end: { status: "succeeded", success: TASKS, failure: 0 } },
  failing: { maxRetries: 1, code: "3", end: { status: "failed", failure: TASKS, success: 0, retried: TASKS } },
  cancelled: { maxRetries: 100, code: "0", end: { status: "cancelled", failure: 0 } },
} as const;
type Fate = keyof typeof FATES;

describe("killed while tasks run", () => {
  test(`${KILLS} kills, one server on SQLite`, () =>
    chaos({ folders: ["one"], databaseUrl: "", events: { server: 0.7, task: 0.3 } }));

  test(`${KILLS} kills, two servers on PostgreSQL`, async (context) => {
    const postgres = await startPrivatePostgres();
    if ("reason" in postgres) return context.skip(postgres.reason);
    try {
      const absent = LONG ? { gone: 0.04, paused: 0.04 } : {};
      await chaos({
        folders: ["one", "two"],
        databaseUrl: await createDatabase(postgres.url),
        events: { server: 0.55, task: 0.22, database: 0.15, ...absent },
        crashDatabase: () => postgres.crash(),
      });
    } finally {
      await postgres.stop();
    }
  });
});

interface Chaos {
  folders: string[];
  databaseUrl: string;
  /** How often each happens, of one. */
  events: Record<string, number>;
  crashDatabase?(): Promise<void>;
}

async function chaos({ folders, databaseUrl, events, crashDatabase }: Chaos): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "chaos-"));
  const random = seeded(SEED);
  const start = (folder: string): Promise<ChaosServer> => startChaosServer(join(dir, folder), databaseUrl);
  const servers = await Promise.all(folders.map(start));
  const call = patientCaller(() => servers[0]?.url ?? "");
  const restart = async (n: number, afterMs: number): Promise<void> => {
    await servers[n]?.kill();
    await delay(afterMs);
    servers[n] = await start(folders[n] ?? "");
  };
  const running = (): number[] => folders.flatMap((folder) => runningTasks(join(dir, folder, "tasks")));
  const kill: Record<string, () => Promise<void>> = {
    server: () => restart(Math.floor(random() * servers.length), 0),
    // Calls go to the first one.
    gone: () => restart(servers.length - 1, ABSENT_MS),
    async paused() {
      servers.at(-1)?.signal("SIGSTOP");
      await delay(ABSENT_MS);
      servers.at(-1)?.signal("SIGCONT");
    },
    async task() {
      await busy(running);
      const groups = running();
      const group = groups[Math.floor(random() * groups.length)];
      if (group !== undefined) killGroup(group);
    },
    database: async () => crashDatabase?.(),
  };
  try {
    await makeJobs(call);
    const started: { id: string; fate: Fate }[] = [];
    for (let n = 0; n < KILLS; n += 1) {
      if (n % KILLS_PER_EXECUTION === 0) started.push(await startExecution(call, join(dir, "out"), started.length));
      await busy(running);
      await delay(random() * 500);
      const latest = started.at(-1);
      if (latest?.fate === "cancelled") await call("DELETE", `/jobs/cancelled/executions/${latest.id}`);
      // Tasks may outlive their server and end; the first kill is of those that run, so that even few of them show.
      if (n === 0) await killMidway(join(dir, "out"), running);
      else await kill[chosen(events, random())]?.();
    }
    for (const { id, fate } of started) verify(fate, await ended(call, fate, id));
    verifyFile(join(dir, "out"), started);
  } finally {
    await Promise.all(servers.map((server) => server.kill()));
    rmSync(dir, { recursive: true, force: true });
  }
}

type Call = (method: string, path: string, options?: CallOptions) => Promise<Answer>;

/** The database may be away just now. */
const patientCaller =
  (url: () => string): Call =>
  async (method, path, options) => {
    for (let tries = 0; ; tries += 1) {
      const answer = await caller(url())(method, path, options).catch(() => null);
      if (answer && answer.status < 500) return answer;
      if (tries > TRIES) throw new Error(`${method} ${path}: ${JSON.stringify(answer?.body)}`);
      await delay(50);
    }
  };

async function makeJobs(call: Call): Promise<void> {
  for (const [name, { maxRetries }] of Object.entries(FATES)) {
    const runtime = {
      image: "fake/base-image:latest",
      command: ["sh", "-c", TASK],
      maxConcurrentTasks: 6,
      memory: 128,
      maxRetries,
    };
    await call("POST", "/jobs", { body: { metadata: { name }, spec: { runtime } } });
  }
}

async function startExecution(call: Call, out: string, n: number): Promise<{ id: string; fate: Fate }> {
  const fate = (Object.keys(FATES) as Fate[])[n % 3] ?? "steady";
  const tasks = Array.from({ length: TASKS }, () => ({}));
  // Its own name, because a create whose answer was lost is made again.
  const body = { tasks, executionId: `chaos-${n}`, env: { OUT: out, CODE: FATES[fate].code } };
  const answer = await call("POST", `/jobs/${fate}/executions`, { body });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return { id: answer.body.executionId, fate };
}

/** Until one that had begun begins again. */
async function killMidway(out: string, running: () => readonly number[]): Promise<void> {
  let killedAt = 0;
  for (let tries = 0; tries < TRIES && begunAgain(out) === 0; tries += 1) {
    const begun = linesOf(out, "start").length;
    if (begun > killedAt && begun > linesOf(out, "end").length) {
      for (const group of running()) killGroup(group);
      killedAt = begun;
    }
    await delay(20);
  }
}

function killGroup(group: number): void {
  try {
    process.kill(-group, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // it has ended by itself
  }
}

const begunAgain = (out: string): number => linesOf(out, "start").length - new Set(linesOf(out, "start")).size;

const linesOf = (out: string, word: string): string[] =>
  existsSync(out)
    ? readFileSync(out, "utf8")
        .split("\n")
        .filter((line) => line.startsWith(`${word} `))
    : [];

/** A kill is to hit something; once all is done there is nothing. */
async function busy(running: () => readonly number[]): Promise<void> {
  for (let tries = 0; tries < BUSY_TRIES && running().length === 0; tries += 1) await delay(20);
}

async function ended(call: Call, fate: Fate, id: string): Promise<Answer["body"]> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const { body } = await call("GET", `/jobs/${fate}/executions/${id}?inlineTasks=true`);
    if (body.metadata.completedAt) return body;
    await delay(50);
  }
  throw new Error(`the ${fate} execution ${id} did not end`);
}

function verify(fate: Fate, { status, stats, tasks }: Answer["body"]): void {
  const seen = { ...stats, status };
  assert.deepEqual(seen, { ...seen, ...FATES[fate].end, total: TASKS, running: 0 });
  const count = (wanted: string): number => tasks.filter((task: Answer["body"]) => task.status === wanted).length;
  assert.deepEqual(
    [stats.success, stats.failure, stats.cancelled],
    [count("succeeded"), count("failed"), count("cancelled")],
    "the counters agree with the tasks",
  );
  assert.equal(stats.success + stats.failure + stats.cancelled, TASKS);
}

function verifyFile(out: string, started: readonly { id: string; fate: Fate }[]): void {
  const having = (word: string): string[] => linesOf(out, word);
  assert.deepEqual(having("twice"), []);
  const ends = new Set(having("end").map((line) => line.slice("end ".length)));
  for (const { id } of started.filter(({ fate }) => fate === "steady"))
    for (let index = 0; index < TASKS; index += 1) assert.ok(ends.has(`${id}/${index}`), `${id}/${index} was lost`);
  assert.ok(begunAgain(out) > 0, "the kills hit running tasks");
}

function chosen(events: Record<string, number>, at: number): string {
  let sum = 0;
  for (const [name, share] of Object.entries(events)) {
    sum += share;
    if (sum > at) return name;
  }
  return "server";
}

/** The same kills every time. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}
