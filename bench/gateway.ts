/**
 * The gateway against its floors, in one run, with the same upstream behind all: no proxy at all, a bare proxy on
 * node:http and undici, the gateway without its fast lane, and nginx where it can be had. Throughput for GET and
 * 1 KB POST at 32 and 128 connections, CPU time per request, sequential overhead, HTTPS and HTTP/2 with one certificate,
 * memory of idle connections, lag of streamed events, 1 GB each way with peak memory, and the cold start of an agent.
 * Flags: --rounds=N (default 3), --part=NAME (throughput, sequential, secure, idle, events, gigabytes, cold or edges
 * alone), --force (edges also on fewer than four cores, to see that the measurement runs), --soak=SECONDS (memory over time while routes change, instead of all else), --cold=ROUNDS (cold starts alone).
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testAuthority } from "../test/tls-credential.ts";
import { coldStart } from "./gateway-parts/cold-start.ts";
import { edgeProcesses } from "./gateway-parts/edges.ts";
import { type IdleWay, idle } from "./gateway-parts/idle.ts";
import { shoot } from "./gateway-parts/load.ts";
import { startNginx } from "./gateway-parts/nginx.ts";
import { secure } from "./gateway-parts/secure.ts";
import { soak } from "./gateway-parts/soak.ts";
import { cpuTicks, memoryMb, middle, resetPeak, type Subject, TICK_MICROS } from "./gateway-parts/subject.ts";
import { type Load, percentiles, table } from "./measure.ts";

const ROUND_MS = 2000;
const COLD_ROUNDS = 10;
const GIGABYTE = 1024 ** 3;
const PREFIX = "/bench/agents/agent";

export async function run(flags: string[]): Promise<void> {
  const flag = (name: string): string | undefined =>
    flags.find((one) => one.startsWith(`--${name}=`))?.slice(name.length + 3);
  const rounds = Number(flag("rounds") ?? 3);
  const soakSeconds = Number(flag("soak") ?? 0);
  const coldRounds = Number(flag("cold") ?? 0);
  if (coldRounds > 0) return coldStart(coldRounds);
  const children: ChildProcess[] = [];
  const dir = mkdtempSync(join(tmpdir(), "berth-bench-"));
  try {
    const { certificate, key } = testAuthority().credentialOf("bench.test");
    for (const [name, text] of Object.entries({ "cert.pem": certificate, "key.pem": key }))
      writeFileSync(join(dir, name), text);
    const upstream = await part(children, "upstream", []);
    const port = String(upstream.port);
    const tlsArgs = [port, "tls", dir];
    const gateway = { ...(await part(children, "gateway-process", [port])), name: "gateway" };
    if (soakSeconds > 0) return await soak(gateway, soakSeconds, requestFor("POST", "/x"));
    const bare = await part(children, "bare-proxy", [port]);
    const plain = await part(children, "gateway-process", [port, "node"]);
    const tls = { ...(await part(children, "gateway-process", tlsArgs)), name: "gateway" };
    const nginx = await startNginx(children, dir, upstream.port);
    const subjects: Subject[] = [
      { ...upstream, name: "no proxy" },
      { ...bare, name: "bare undici proxy" },
      { ...plain, name: "gateway, node:http only" },
      gateway,
      ...(nginx ? [nginx.plain] : []),
    ];
    const encrypted = [tls, ...(nginx ? [nginx.secure] : [])];
    const parts: Record<string, () => Promise<void>> = {
      throughput: () => throughput(subjects, rounds),
      sequential: () => sequential(subjects),
      secure: () =>
        secure(encrypted, rounds, { request: requestFor("GET", "/x"), path: `${PREFIX}/x`, headers: KEY_FIELD }),
      idle: () =>
        idle(
          [
            { name: "gateway", start: (isSecure) => part(children, "gateway-process", isSecure ? tlsArgs : [port]) },
            { name: "nginx", start: (isSecure) => freshNginx(children, dir, upstream.port, isSecure) },
          ],
          IDLE_WAYS,
          requestFor("GET", "/x"),
        ),
      events: () => eventLag(subjects),
      gigabytes: () => gigabytes(subjects),
      cold: () => coldStart(COLD_ROUNDS),
      edges: () => edgeProcesses(upstream.port, rounds, flags.includes("--force")),
    };
    const only = flag("part");
    for (const [name, measure] of Object.entries(parts)) if (only === undefined || only === name) await measure();
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
          "CPU of nginx": medians.has("nginx")
            ? median.cpuMicros / (medians.get("nginx")?.cpuMicros ?? Number.NaN)
            : "",
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

const KEY_FIELD = { "X-Service-Authorization": "Bearer bench-key" };
const AUTH = "X-Service-Authorization: Bearer bench-key\r\n";
const WEBSOCKET =
  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: YmVuY2gtYmVuY2gtYmVuYw==\r\n";

/** The same bytes for every subject: the proxies that know nothing of prefixes and keys pass them on. */
function requestFor(method: "GET" | "POST", path: string, more = ""): Buffer {
  const common = "Host: bench.test\r\nUser-Agent: bench\r\nAccept: */*\r\n";
  const target = path.startsWith("/x") ? `${PREFIX}/x` : `${PREFIX}${path}`;
  const body = "a".repeat(1024);
  return Buffer.from(
    method === "GET"
      ? `GET ${target} HTTP/1.1\r\n${common}${AUTH}${more}\r\n`
      : `POST ${target} HTTP/1.1\r\n${common}${AUTH}Content-Type: application/json\r\nContent-Length: 1024\r\n\r\n${body}`,
  );
}

const IDLE_WAYS: readonly IdleWay[] = [
  { name: "HTTP", secure: false, request: requestFor("GET", "/x") },
  { name: "HTTPS", secure: true, request: requestFor("GET", "/x") },
  { name: "WebSocket", secure: false, request: requestFor("GET", "/x", WEBSOCKET) },
  { name: "WebSocket over TLS", secure: true, request: requestFor("GET", "/x", WEBSOCKET) },
];

async function freshNginx(
  children: ChildProcess[],
  dir: string,
  upstream: number,
  isSecure: boolean,
): Promise<Subject | null> {
  const nginx = await startNginx(children, dir, upstream);
  return nginx && (isSecure ? nginx.secure : nginx.plain);
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
    churn: (isOn) => void child.send(isOn ? "churn" : "calm"),
  };
}
