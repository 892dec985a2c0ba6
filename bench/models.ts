/**
 * What the model gateway adds to a request, against the same upstream asked directly and, when it can be found, the
 * open-source Portkey gateway in the same run. Rounds alternate, medians are compared.
 * Flags: --rounds=N (3), --seconds=N (3), --portkey=DIR (a folder with @portkey-ai/gateway in its node_modules).
 */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { table } from "./measure.ts";
import { type RawLoad, type RawTarget, rawLoad } from "./models/raw-load.ts";
import { startWholeServer } from "./models/whole-server.ts";

const BUSY = 32;
const PORTKEY_PORT = 18_787;

interface Contender {
  name: string;
  pid: number;
  target: Omit<RawTarget, "body">;
}

interface Sample {
  busy: RawLoad;
  alone: RawLoad;
  streams: RawLoad;
  cpuUs: number;
}

export async function run(flags: string[]): Promise<void> {
  const rounds = numberFlag(flags, "rounds", 3);
  const durationMs = numberFlag(flags, "seconds", 3) * 1000;
  const children: ChildProcess[] = [];
  try {
    const contenders = await startAll(flags, children);
    const samples = new Map<Contender, Sample[]>(contenders.map((contender) => [contender, []]));
    // Until the compilers are done, which on a busy machine takes a while.
    for (const contender of contenders) {
      for (const stream of [false, true, false]) await rawLoad(withBody(contender, stream), BUSY, durationMs);
    }
    for (let round = 0; round < rounds; round += 1) {
      for (const contender of contenders) samples.get(contender)?.push(await measure(contender, durationMs));
    }
    report(samples);
  } finally {
    await Promise.all(children.map(ended));
  }
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
    if (!child.kill()) resolve();
  });
}

async function startAll(flags: string[], children: ChildProcess[]): Promise<Contender[]> {
  const upstream = await forked("upstream-process.ts", [], children);
  const baseUrl = `http://127.0.0.1:${upstream.port}/v1`;
  const engine = await forked("gateway-process.ts", [baseUrl], children);
  const contenders: Contender[] = [
    {
      name: "upstream, asked directly",
      pid: upstream.pid,
      target: { port: upstream.port, path: "/v1/chat/completions", headers: {} },
    },
    {
      name: "model gateway",
      pid: engine.pid,
      target: {
        port: engine.port,
        path: "/bench/models/m/v1/chat/completions",
        headers: { authorization: "Bearer key" },
      },
    },
  ];
  const whole = await startWholeServer(baseUrl);
  children.push(whole.child);
  contenders.push({
    name: "whole server, with its ledger",
    pid: whole.child.pid ?? 0,
    target: {
      port: whole.port,
      path: "/main/models/m/v1/chat/completions",
      headers: { authorization: `Bearer ${whole.apiKey}` },
    },
  });
  const script = portkeyScript(flags);
  if (!script) {
    console.log("Portkey: skipped; install @portkey-ai/gateway somewhere and give that folder with --portkey=DIR.");
    return contenders;
  }
  const child = spawn(process.execPath, [script, "--headless", `--port=${PORTKEY_PORT}`], { stdio: "ignore" });
  children.push(child);
  await listening(PORTKEY_PORT);
  const headers = { authorization: "Bearer key", "x-portkey-provider": "openai", "x-portkey-custom-host": baseUrl };
  contenders.push({
    name: "Portkey gateway",
    pid: child.pid ?? 0,
    target: { port: PORTKEY_PORT, path: "/v1/chat/completions", headers },
  });
  return contenders;
}

async function measure(contender: Contender, durationMs: number): Promise<Sample> {
  const before = cpuMs(contender.pid);
  const busy = await rawLoad(withBody(contender, false), BUSY, durationMs);
  const requests = (busy.perSecond * durationMs) / 1000;
  const cpuUs = ((cpuMs(contender.pid) - before) * 1000) / requests;
  const alone = await rawLoad(withBody(contender, false), 1, durationMs / 2);
  const streams = await rawLoad(withBody(contender, true), BUSY, durationMs);
  return { busy, alone, streams, cpuUs };
}

function report(samples: Map<Contender, Sample[]>): void {
  const of = (contender: Contender, pick: (sample: Sample) => number): number =>
    median((samples.get(contender) ?? []).map(pick));
  const total = (contender: Contender, pick: (sample: Sample) => number): number =>
    (samples.get(contender) ?? []).reduce((sum, sample) => sum + pick(sample), 0);
  const all = [...samples.keys()];
  const [direct] = all;
  const reference = all.find((contender) => contender.name.startsWith("Portkey"));
  if (!direct) return;
  /** Empty when the reference is not there, or answered nothing: its release of 2026 fails on streams. */
  const ofReference = (contender: Contender, pick: (sample: Sample) => number): number | string =>
    reference && of(reference, pick) > 0 ? of(contender, pick) / of(reference, pick) : "";
  const added = (contender: Contender, pick: (sample: Sample) => number): number =>
    of(contender, pick) - of(direct, pick);
  const addedOf = (contender: Contender, pick: (sample: Sample) => number): number | string =>
    reference ? added(contender, pick) / added(reference, pick) : "";
  table(
    `Chat answers (${BUSY} connections; latency with one, "busy" with ${BUSY})`,
    all.map((contender) => ({
      what: contender.name,
      "per second": of(contender, (sample) => sample.busy.perSecond),
      "of Portkey": ofReference(contender, (sample) => sample.busy.perSecond),
      "CPU us each": of(contender, (sample) => sample.cpuUs),
      "added p50 ms": added(contender, (sample) => sample.alone.p50Ms),
      "added p99 ms": added(contender, (sample) => sample.alone.p99Ms),
      "of Portkey's": addedOf(contender, (sample) => sample.alone.p50Ms),
      "added p50 busy": added(contender, (sample) => sample.busy.p50Ms),
      "of Portkey's busy": addedOf(contender, (sample) => sample.busy.p50Ms),
      "memory MB": residentMb(contender.pid),
      failed: total(contender, (sample) => sample.busy.failed + sample.alone.failed),
    })),
  );
  table(
    `Streams of 100 events (${BUSY} connections)`,
    all.map((contender) => ({
      what: contender.name,
      "streams per second": of(contender, (sample) => sample.streams.perSecond),
      "of Portkey": ofReference(contender, (sample) => sample.streams.perSecond),
      "p50 ms": of(contender, (sample) => sample.streams.p50Ms),
      "p99 ms": of(contender, (sample) => sample.streams.p99Ms),
      failed: total(contender, (sample) => sample.streams.failed),
    })),
  );
}

const withBody = ({ target }: Contender, stream: boolean): RawTarget => ({
  ...target,
  body: JSON.stringify({
    model: "gpt-4o-mini",
    messages: [{ role: "user", content: "hello ".repeat(50) }],
    ...(stream ? { stream: true } : {}),
  }),
});

function forked(script: string, args: string[], children: ChildProcess[]): Promise<{ port: number; pid: number }> {
  const child = fork(join(import.meta.dirname, "models", script), args);
  children.push(child);
  return new Promise((resolve, reject) => {
    child.once("message", (port) => resolve({ port: Number(port), pid: child.pid ?? 0 }));
    child.once("exit", (code) => reject(new Error(`${script} ended with ${code}`)));
  });
}

function portkeyScript(flags: string[]): string | null {
  const given = flags.find((flag) => flag.startsWith("--portkey="))?.slice("--portkey=".length);
  const script = "node_modules/@portkey-ai/gateway/build/start-server.js";
  return (
    [given, join(import.meta.dirname, "..")].map((dir) => join(dir ?? "", script)).find((path) => existsSync(path)) ??
    null
  );
}

async function listening(port: number): Promise<void> {
  for (;;) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => resolve(true));
      socket.on("error", () => resolve(false));
      socket.on("connect", () => socket.destroy());
    });
    if (open) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const numberFlag = (flags: string[], name: string, otherwise: number): number =>
  Number(flags.find((flag) => flag.startsWith(`--${name}=`))?.slice(name.length + 3) ?? otherwise);

const median = (values: number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** User and system time in clock ticks of ten milliseconds. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

const residentMb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
