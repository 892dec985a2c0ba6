/**
 * The control plane against its floors, in one run: durable creates over HTTP against bare durable SQLite commits,
 * point reads against an empty Fastify route with a bearer check, list pages and searches as the number of resources
 * grows, start-up time and idle memory. Flags: --rows=N (largest list, default 100000), --postgres=URL.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import Fastify from "fastify";
import { Pool } from "undici";
import { type ListQuery, parseListQuery } from "../src/contract/list-query.ts";
import { systemClock } from "../src/lib/clock.ts";
import { uuidv7 } from "../src/lib/ids.ts";
import { openStore, type Store } from "../src/store/store.ts";
import { load, percentiles, table } from "./measure.ts";

const CLIENTS = 32;
const DURATION_MS = 4000;
const KEY = "bench-admin-key-0123456789";

export async function run(flags: string[]): Promise<void> {
  const rows = Number(flags.find((flag) => flag.startsWith("--rows="))?.slice(7) ?? 100_000);
  const postgres = flags.find((flag) => flag.startsWith("--postgres="))?.slice(11) ?? null;
  await requests();
  await lists(rows, null);
  if (postgres) await lists(rows, postgres);
  else console.log("\nLists on PostgreSQL: skipped; give an empty database with --postgres=postgres://…");
}

async function requests(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "berth-bench-"));
  const started = performance.now();
  const server = await startServer(dir);
  const readyMs = performance.now() - started;
  const memoryMb = residentMb(server.pid);
  const client = new Pool(server.url, { connections: CLIENTS });
  const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
  const send = async (method: "GET" | "POST", path: string, body?: string): Promise<void> => {
    const answer = await client.request({ method, path, headers, ...(body ? { body } : {}) });
    await answer.body.text();
    if (answer.statusCode !== 200) throw new Error(`${method} ${path} answered ${answer.statusCode}`);
  };
  await load(CLIENTS, 1000, (n) =>
    send("POST", "/v0/drives", JSON.stringify({ metadata: { name: `warm${n}` }, spec: {} })),
  );
  const commits = bareCommits(dir);
  const creates = await load(CLIENTS, DURATION_MS, (n) =>
    send(
      "POST",
      "/v0/drives",
      JSON.stringify({ metadata: { name: `bench${n}`, labels: { team: "red" } }, spec: { region: "local", size: 10 } }),
    ),
  );
  const gets = await load(CLIENTS, DURATION_MS, () => send("GET", "/v0/drives/bench0"));
  const empty = await bareRoute();
  table("Requests, 32 clients", [
    { what: "bare durable SQLite commits", "per second": commits, p50Ms: "", p99Ms: "", ratio: 1 },
    {
      what: "durable creates over HTTP",
      "per second": creates.perSecond,
      p50Ms: creates.p50Ms,
      p99Ms: creates.p99Ms,
      ratio: creates.perSecond / commits,
    },
    {
      what: "empty Fastify route, bearer check",
      "per second": empty.perSecond,
      p50Ms: empty.p50Ms,
      p99Ms: empty.p99Ms,
      ratio: 1,
    },
    {
      what: "GET one resource",
      "per second": gets.perSecond,
      p50Ms: gets.p50Ms,
      p99Ms: gets.p99Ms,
      ratio: gets.perSecond / empty.perSecond,
    },
  ]);
  table("Process", [
    { "ready after ms": readyMs, "idle memory MB": memoryMb, "memory after load MB": residentMb(server.pid) },
  ]);
  await client.close();
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
}

/** One row per commit, each on the disk before the next: what durability costs without us. */
function bareCommits(dir: string): number {
  const database = new DatabaseSync(join(dir, "bare.sqlite"));
  database.exec(
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (id TEXT PRIMARY KEY, body TEXT)",
  );
  const insert = database.prepare("INSERT INTO t VALUES (?, ?)");
  const body = "x".repeat(600);
  const end = performance.now() + DURATION_MS;
  let n = 0;
  while (performance.now() < end) insert.run(`row${n++}`, body);
  database.close();
  return (n * 1000) / DURATION_MS;
}

async function bareRoute() {
  const app = Fastify();
  app.get("/v0/drives/:name", async (request, reply) => {
    if (request.headers.authorization !== `Bearer ${KEY}`) return reply.code(401).send();
    return { ok: true };
  });
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  const client = new Pool(url, { connections: CLIENTS });
  const result = await load(CLIENTS, DURATION_MS, async () => {
    const answer = await client.request({
      method: "GET",
      path: "/v0/drives/x",
      headers: { authorization: `Bearer ${KEY}` },
    });
    await answer.body.text();
  });
  await client.close();
  await app.close();
  return result;
}

async function lists(rowsMax: number, databaseUrl: string | null): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "berth-bench-"));
  const store = await openStore({
    databaseUrl,
    dataDir: dir,
    secretKey: Buffer.alloc(32, 1),
    clock: systemClock,
    onError: (error) => console.error(error),
  });
  await store.write((tx) =>
    store.workspaces.insert(
      tx,
      { name: "main", accountId: "a", displayName: "", region: "", labels: {}, groupMappings: [], runtime: {} },
      "bench",
    ),
  );
  const sizes = [1000, 10_000, 100_000, 1_000_000].filter((size) => size <= rowsMax);
  const rows = [];
  let first: Record<string, number> | null = null;
  for (const [at, size] of sizes.entries()) {
    await fill(store, at === 0 ? 0 : (sizes[at - 1] ?? 0), size);
    const times = await questions(store);
    first ??= times;
    rows.push({
      resources: size,
      ...Object.fromEntries(
        Object.entries(times).map(([name, ms]) => [
          name,
          `${ms.toFixed(2)} (${(ms / (first?.[name] ?? ms)).toFixed(1)}x)`,
        ]),
      ),
    });
  }
  table(
    `p99 ms of one page on ${databaseUrl ? "PostgreSQL" : "SQLite"}, and as a multiple of that at ${sizes[0]} resources`,
    rows,
  );
  await store.close();
  rmSync(dir, { recursive: true, force: true });
}

const TEAMS = ["red", "green", "blue", "amber", "violet"];

async function fill(store: Store, from: number, to: number): Promise<void> {
  const BATCH = 500;
  for (let start = from; start < to; start += BATCH) {
    await Promise.all(
      Array.from({ length: Math.min(BATCH, to - start) }, (_, n) =>
        store.resources.create({
          workspace: "main",
          kind: "drive",
          parent: "",
          uid: uuidv7(Date.now()),
          name: `drive-${((start + n) * 7919) % 10_000_019}`,
          metadata: { displayName: `Number ${start + n}`, labels: { team: TEAMS[(start + n) % TEAMS.length] ?? "" } },
          spec: { region: "local", size: 10 },
          secrets: {},
          state: {},
          status: "DEPLOYED",
          events: [],
          revision: false,
          actor: "bench",
          settled: true,
        }),
      ),
    );
  }
}

async function questions(store: Store): Promise<Record<string, number>> {
  const asked: Record<string, ListQuery> = {
    "newest page": parseListQuery({}),
    "name:asc page": parseListQuery({ sort: "name:asc" }),
    "rare word": parseListQuery({ q: "number 77" }),
    "common word": parseListQuery({ q: "violet" }),
    "two letters": parseListQuery({ q: "ed" }),
    "absent word": parseListQuery({ q: "nowhere" }),
    "common, by name": parseListQuery({ q: "violet", sort: "name:asc" }),
  };
  const times: Record<string, number> = {};
  for (const [name, query] of Object.entries(asked)) {
    const samples: number[] = [];
    for (let n = 0; n < 120; n += 1) {
      const at = performance.now();
      await store.resources.list({ workspace: "main", kind: "drive", parent: "" }, query);
      samples.push(performance.now() - at);
    }
    times[name] = percentiles(samples.slice(20)).p99Ms;
  }
  return times;
}

async function startServer(dir: string): Promise<{ url: string; pid: number; stop(): Promise<void> }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "../src/main.ts"), "up"], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { PATH: process.env.PATH, HOME: dir, PORT: "0", BERTH_DATA: dir, BERTH_API_KEY: KEY, BERTH_LOG_LEVEL: "warn" },
  });
  const url = await new Promise<string>((resolve) => {
    child.stderr.on("data", (chunk: Buffer) => {
      const match = /API\s+(http\S+)\/v0/.exec(chunk.toString());
      if (match?.[1]) resolve(match[1]);
    });
  });
  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      child.once("exit", () => resolve());
      child.kill("SIGTERM");
    });
  return { url, pid: child.pid ?? 0, stop };
}

const residentMb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
