/** Requests over HTTP against what they cannot be faster than. */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Pool } from "undici";
import { type Load, load, table } from "../measure.ts";

const CLIENTS = 32;
const DURATION_MS = 4000;
/** Until the functions on the way are compiled; measured before, one measures the compiler. */
const WARM_UP_MS = 8000;
/** By then the server has given back what only its start needed. */
const SETTLED_MS = 4000;
const KEY = "bench-admin-key-0123456789";

export async function requests(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "berth-bench-"));
  const started = performance.now();
  const server = await start([join(import.meta.dirname, "../../bin/berth.js"), "up"], {
    HOME: dir,
    PORT: "0",
    BERTH_DATA: dir,
    BERTH_API_KEY: KEY,
    BERTH_LOG_LEVEL: "warn",
  });
  const readyMs = performance.now() - started;
  const startMb = residentMb(server.pid);
  await new Promise((resolve) => setTimeout(resolve, SETTLED_MS));
  const memoryMb = residentMb(server.pid);
  const client = new Pool(server.url, { connections: CLIENTS });
  const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
  const send = async (method: "GET" | "POST", path: string, body?: string): Promise<void> => {
    const answer = await client.request({ method, path, headers, ...(body ? { body } : {}) });
    await answer.body.text();
    if (answer.statusCode !== 200) throw new Error(`${method} ${path} answered ${answer.statusCode}`);
  };
  await load(CLIENTS, WARM_UP_MS, (n) =>
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
  await load(CLIENTS, WARM_UP_MS, () => send("GET", "/v0/drives/bench0"));
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
    {
      "ready after ms": readyMs,
      "memory at start MB": startMb,
      "idle memory MB": memoryMb,
      "memory after load MB": residentMb(server.pid),
    },
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

/** In a process of its own, as the server is. */
async function bareRoute(): Promise<Load> {
  const server = await start([join(import.meta.dirname, "bare-route.ts")], { BENCH_KEY: KEY });
  const client = new Pool(server.url, { connections: CLIENTS });
  const ask = async (): Promise<void> => {
    const answer = await client.request({
      method: "GET",
      path: "/v0/drives/x",
      headers: { authorization: `Bearer ${KEY}` },
    });
    await answer.body.text();
  };
  await load(CLIENTS, WARM_UP_MS, ask);
  const result = await load(CLIENTS, DURATION_MS, ask);
  await client.close();
  await server.stop();
  return result;
}

interface Child {
  url: string;
  pid: number;
  stop(): Promise<void>;
}

async function start(argv: string[], env: Record<string, string>): Promise<Child> {
  const child = spawn(process.execPath, argv, {
    stdio: ["ignore", "ignore", "pipe"],
    env: { PATH: process.env.PATH, ...env },
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
