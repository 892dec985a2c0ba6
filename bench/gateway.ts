/**
 * The gateway against its floors, in one run, with the same upstream behind all: no proxy at all, a bare proxy on
 * node:http and undici, the gateway without its fast lane, and nginx where it is installed. Throughput for GET and
 * 1 KB POST at 32 and 128 connections, CPU time per request, sequential overhead, lag of streamed events, 1 GB each way
 * with peak memory, and the cold start of an agent. Flags: --rounds=N (default 3), --soak=SECONDS (memory over time
 * instead of all else), --cold=ROUNDS (cold starts instead of all else).
 */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { coldStart } from "./gateway-parts/cold-start.ts";
import { shoot } from "./gateway-parts/load.ts";
import { type Load, percentiles, table } from "./measure.ts";

interface Subject {
  name: string;
  port: number;
  /** Processes whose CPU time counts. */
  pids(): number[];
  /** What is alive in its heap, after a collection. */
  heapMb?(): Promise<number>;
}

const ROUND_MS = 2000;
const COLD_ROUNDS = 10;
const GIGABYTE = 1024 ** 3;
const PREFIX = "/bench/agents/agent";

export async function run(flags: string[]): Promise<void> {
  const rounds = Number(flags.find((flag) => flag.startsWith("--rounds="))?.slice(9) ?? 3);
  const soakSeconds = Number(flags.find((flag) => flag.startsWith("--soak="))?.slice(7) ?? 0);
  const coldRounds = Number(flags.find((flag) => flag.startsWith("--cold="))?.slice(7) ?? 0);
  if (coldRounds > 0) return coldStart(coldRounds);
  const children: ChildProcess[] = [];
  const dir = mkdtempSync(join(tmpdir(), "berth-bench-"));
  try {
    const upstream = await part(children, "upstream", []);
    const bare = await part(children, "bare-proxy", [String(upstream.port)]);
    const gateway = await part(children, "gateway-process", [String(upstream.port)]);
    const plain = await part(children, "gateway-process", [String(upstream.port), "node"]);
    const nginx = await startNginx(children, dir, upstream.port);
    const subjects: Subject[] = [
      { ...upstream, name: "no proxy" },
      { ...bare, name: "bare undici proxy" },
      { ...plain, name: "gateway, node:http only" },
      { ...gateway, name: "gateway" },
      ...(nginx ? [nginx] : []),
    ];
    if (soakSeconds > 0) {
      await soak(gateway, soakSeconds);
      return;
    }
    await throughput(subjects, rounds);
    await sequential(subjects);
    await eventLag(subjects);
    await gigabytes(subjects);
    await coldStart(COLD_ROUNDS);
  } finally {
    for (const child of children) child.kill();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Medians over rounds in which every subject had its turn, so that the machine's moods meet all alike. */
async function throughput(subjects: Subject[], rounds: number): Promise<void> {
  for (const connections of [32, 128]) {
    for (const method of ["GET", "POST"] as const) {
      const results = new Map(subjects.map(({ name }) => [name, [] as Measured[]]));
      for (let round = 0; round <= rounds; round += 1) {
        for (const subject of subjects) {
          const before = cpuTicks(subject);
          const request = requestFor(method, "/x");
          const load = await shoot({
            port: subject.port,
            request,
            connections,
            durationMs: round === 0 ? 500 : ROUND_MS,
          });
          const cpuMicros = ((cpuTicks(subject) - before) * TICK_MICROS) / load.count;
          if (round > 0) results.get(subject.name)?.push({ ...load, cpuMicros });
        }
      }
      const medians = new Map([...results].map(([name, loads]) => [name, medianOf(loads)]));
      const of = (name: string): number => medians.get(name)?.perSecond ?? Number.NaN;
      table(
        `${method}${method === "POST" ? " 1 KB" : ""}, ${connections} connections`,
        [...medians].map(([what, median]) => ({
          what,
          "per second": median.perSecond,
          p50Ms: median.p50Ms,
          p99Ms: median.p99Ms,
          "CPU µs each": median.cpuMicros,
          "of bare": median.perSecond / of("bare undici proxy"),
          "of nginx": medians.has("nginx") ? median.perSecond / of("nginx") : "",
          "of none": median.perSecond / of("no proxy"),
        })),
      );
    }
  }
}

interface Measured extends Load {
  cpuMicros: number;
}

function medianOf(rows: Measured[]): Measured {
  const median = (key: keyof Measured): number => middle(rows.map((row) => row[key]));
  const [perSecond, p50Ms, p95Ms, p99Ms] = [median("perSecond"), median("p50Ms"), median("p95Ms"), median("p99Ms")];
  return { perSecond, p50Ms, p95Ms, p99Ms, cpuMicros: median("cpuMicros") };
}

const middle = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

async function sequential(subjects: Subject[]): Promise<void> {
  const rows: { what: string; p50: number[]; p99: number[] }[] = subjects.map(({ name }) => ({
    what: name,
    p50: [],
    p99: [],
  }));
  for (let round = 0; round < 5; round += 1) {
    for (const [at, { port }] of subjects.entries()) {
      const load = await shoot({ port, request: requestFor("GET", "/x"), connections: 1, durationMs: 800 });
      rows[at]?.p50.push(load.p50Ms);
      rows[at]?.p99.push(load.p99Ms);
    }
  }
  const floor = middle(rows[0]?.p50 ?? []);
  table(
    "One request at a time",
    rows.map(({ what, p50, p99 }) => ({
      what,
      p50Ms: middle(p50),
      p99Ms: middle(p99),
      "added p50Ms": middle(p50) - floor,
    })),
  );
}

/** Upstream and reader share the machine's clock. */
async function eventLag(subjects: Subject[]): Promise<void> {
  const rows: Record<string, string | number>[] = [];
  for (const { name, port } of subjects) {
    const lags: number[] = [];
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    socket.write(requestFor("GET", "/events"));
    for await (const chunk of socket) {
      const now = process.hrtime.bigint();
      for (const [, sent] of String(chunk).matchAll(/data: (\d+)/g)) lags.push(Number(now - BigInt(sent ?? 0)) / 1e6);
      if (lags.length >= 500) break;
    }
    const { p50Ms, p99Ms } = percentiles(lags.slice(50));
    rows.push({ what: name, p50Ms, p99Ms });
  }
  table("Lag of streamed events", rows);
}

async function gigabytes(subjects: Subject[]): Promise<void> {
  const rows: Record<string, string | number>[] = [];
  for (const subject of subjects) {
    const [pid] = subject.pids();
    if (pid === undefined || subject.name === "nginx") continue;
    for (const way of ["download", "upload"] as const) {
      resetPeak(pid);
      const before = memoryMb(pid, "VmRSS");
      const started = performance.now();
      await (way === "download" ? download(subject.port) : upload(subject.port));
      const seconds = (performance.now() - started) / 1000;
      rows.push({
        what: `${subject.name}, ${way}`,
        "MB/s": 1024 / seconds,
        "RSS before MB": before,
        "peak RSS MB": memoryMb(pid, "VmHWM"),
      });
    }
  }
  table("1 GB", rows);
}

async function download(port: number): Promise<void> {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.write(requestFor("GET", `/bytes/${GIGABYTE}`));
  let got = 0;
  for await (const chunk of socket) {
    got += (chunk as Buffer).length;
    if (got >= GIGABYTE) break;
  }
}

async function upload(port: number): Promise<void> {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.write(`POST ${PREFIX}/x HTTP/1.1\r\nHost: bench\r\n${AUTH}Content-Length: ${GIGABYTE}\r\n\r\n`);
  const block = Buffer.alloc(256 * 1024);
  for (let sent = 0; sent < GIGABYTE; sent += block.length) if (!socket.write(block)) await once(socket, "drain");
  await once(socket, "data");
  socket.destroy();
}

const WARM_UP_MS = 10_000;

/**
 * Memory must not grow: the median of each sixth of the time, under constant load. What the process holds on to is told
 * apart from what its collector has not given back: its heap after a collection, before and after.
 */
async function soak(subject: Subject, seconds: number): Promise<void> {
  const [pid] = subject.pids();
  if (pid === undefined) return;
  const request = requestFor("POST", "/x");
  await shoot({ port: subject.port, request, connections: 32, durationMs: WARM_UP_MS });
  const before = await subject.heapMb?.();
  const samples: number[] = [];
  const timer = setInterval(() => samples.push(memoryMb(pid, "VmRSS")), 500);
  const load = await shoot({
    port: subject.port,
    request,
    connections: 32,
    durationMs: seconds * 1000,
  });
  clearInterval(timer);
  const after = await subject.heapMb?.();
  const size = Math.floor(samples.length / 6);
  const sixths = Array.from({ length: 6 }, (_, at) => middle(samples.slice(at * size, (at + 1) * size)));
  table(`Soak, ${seconds} s, ${load.count} requests`, [
    {
      ...Object.fromEntries(sixths.map((value, at) => [`RSS MB, sixth ${at + 1}`, value])),
      "live heap MB, before": before ?? "-",
      after: after ?? "-",
    },
  ]);
}

const AUTH = "X-Service-Authorization: Bearer bench-key\r\n";

/** The same bytes for every subject: the proxies that know nothing of prefixes and keys pass them on. */
function requestFor(method: "GET" | "POST", path: string): Buffer {
  const common = "Host: bench.test\r\nUser-Agent: bench\r\nAccept: */*\r\n";
  const target = path.startsWith("/x") ? `${PREFIX}/x` : `${PREFIX}${path}`;
  const body = "a".repeat(1024);
  return Buffer.from(
    method === "GET"
      ? `GET ${target} HTTP/1.1\r\n${common}${AUTH}\r\n`
      : `POST ${target} HTTP/1.1\r\n${common}${AUTH}Content-Type: application/json\r\nContent-Length: 1024\r\n\r\n${body}`,
  );
}

async function part(children: ChildProcess[], name: string, args: string[]): Promise<Subject> {
  const child = fork(join(import.meta.dirname, "gateway-parts", `${name}.ts`), args, { execArgv: ["--expose-gc"] });
  children.push(child);
  const [address] = (await once(child, "message")) as [{ port: number }];
  return {
    name,
    port: address.port,
    pids: () => [child.pid ?? 0],
    async heapMb() {
      child.send("heap");
      const [answer] = (await once(child, "message")) as [{ heapMb: number }];
      return answer.heapMb;
    },
  };
}

async function startNginx(children: ChildProcess[], dir: string, upstream: number): Promise<Subject | null> {
  const port = 20_000 + Math.floor(Math.random() * 20_000);
  const temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${dir}/${name};`);
  writeFileSync(
    join(dir, "nginx.conf"),
    `worker_processes auto; daemon off; pid ${dir}/pid; error_log ${dir}/error.log;
events { worker_connections 2048; }
http { access_log off; ${temp.join(" ")}
upstream up { server 127.0.0.1:${upstream}; keepalive 256; keepalive_requests 10000000; }
server { listen 127.0.0.1:${port}; keepalive_requests 10000000; client_max_body_size 0; proxy_request_buffering off;
location / { proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } } }`,
  );
  const child = spawn("nginx", ["-c", join(dir, "nginx.conf")], { stdio: "ignore" });
  children.push(child);
  const failed = await Promise.race([
    once(child, "error").then(() => true),
    once(child, "exit").then(() => true),
    reachable(port).then(() => false),
  ]);
  if (!failed) return { name: "nginx", port, pids: () => [child.pid ?? 0, ...childrenOf(child.pid ?? 0)] };
  console.log("nginx: skipped; install it to see the ratio (apt-get install nginx)");
  return null;
}

async function reachable(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    const outcome = await Promise.race([
      once(socket, "connect").then(() => true),
      once(socket, "close").then(() => false),
    ]).catch(() => false);
    socket.destroy();
    if (outcome) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Linux counts CPU time in hundredths of a second. */
const TICK_MICROS = 10_000;

function cpuTicks({ pids }: Subject): number {
  return pids().reduce((sum, pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return sum + Number(fields[11]) + Number(fields[12]);
  }, 0);
}

function childrenOf(parent: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[1]) === parent;
      } catch {
        return false; // it ended while we looked
      }
    });
}

function memoryMb(pid: number, field: "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]) / 1024;
}

/** Makes the kernel forget the peak so far. */
const resetPeak = (pid: number): void => writeFileSync(`/proc/${pid}/clear_refs`, "5");
