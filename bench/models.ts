/**
 * What the model gateway adds to a request, against the same upstream asked directly and, where they can be found, the
 * open-source gateways of others in the same run. Rounds alternate, medians are compared.
 * Flags: --rounds=N (3), --seconds=N (3), --portkey=DIR (a folder with @portkey-ai/gateway in its node_modules),
 * --litellm=DIR (a virtual environment of Python with litellm[proxy]).
 */
import { type ChildProcess, fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { table } from "./measure.ts";
import { startPeers } from "./models/peers.ts";
import { type RawLoad, type RawTarget, rawLoad } from "./models/raw-load.ts";
import { startWholeServer } from "./models/whole-server.ts";

const BUSY = 32;
/** Bytes of long prompts. */
const LONG_PROMPTS = { "100 KB": 100 * 1024, "1 MB": 1024 * 1024 } as const;
type PromptSize = keyof typeof LONG_PROMPTS;
const SIZES = Object.keys(LONG_PROMPTS) as PromptSize[];

interface Contender {
  name: string;
  pid: number;
  target: Omit<RawTarget, "body">;
  isPeer?: true;
}

interface Sample {
  busy: RawLoad;
  alone: RawLoad;
  streams: RawLoad;
  /** One connection, by the size of the prompt. */
  long: Record<PromptSize, RawLoad>;
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
  for (const { name, child, target } of await startPeers(flags, baseUrl, children))
    contenders.push({ name, pid: child.pid ?? 0, target, isPeer: true });
  return contenders;
}

async function measure(contender: Contender, durationMs: number): Promise<Sample> {
  const before = cpuMs(contender.pid);
  const busy = await rawLoad(withBody(contender, false), BUSY, durationMs);
  const requests = (busy.perSecond * durationMs) / 1000;
  const cpuUs = ((cpuMs(contender.pid) - before) * 1000) / requests;
  const alone = await rawLoad(withBody(contender, false), 1, durationMs / 2);
  const streams = await rawLoad(withBody(contender, true), BUSY, durationMs);
  const long = {} as Sample["long"];
  for (const size of SIZES)
    long[size] = await rawLoad(withBody(contender, false, LONG_PROMPTS[size]), 1, durationMs / 2);
  return { busy, alone, streams, long, cpuUs };
}

function report(samples: Map<Contender, Sample[]>): void {
  const of = (contender: Contender, pick: (sample: Sample) => number): number =>
    median((samples.get(contender) ?? []).map(pick));
  const total = (contender: Contender, pick: (sample: Sample) => number): number =>
    (samples.get(contender) ?? []).reduce((sum, sample) => sum + pick(sample), 0);
  const all = [...samples.keys()];
  const [direct] = all;
  if (!direct) return;
  const peers = all.filter(({ isPeer }) => isPeer);
  const added = (contender: Contender, pick: (sample: Sample) => number): number =>
    of(contender, pick) - of(direct, pick);
  /** A column for each peer; empty where the peer answered nothing. */
  const ratios = (word: string, contender: Contender, value: (contender: Contender) => number) =>
    Object.fromEntries(
      peers.map((peer) => [`${word} ${peer.name}`, value(peer) > 0 ? value(contender) / value(peer) : ""]),
    );
  const perSecond = (contender: Contender): number => of(contender, (sample) => sample.busy.perSecond);
  const addedAlone = (contender: Contender): number => added(contender, (sample) => sample.alone.p50Ms);
  table(
    `Chat answers (${BUSY} connections; latency with one, "busy" with ${BUSY})`,
    all.map((contender) => ({
      what: contender.name,
      "per second": perSecond(contender),
      ...ratios("of", contender, perSecond),
      "CPU us each": of(contender, (sample) => sample.cpuUs),
      "added p50 ms": addedAlone(contender),
      "added p99 ms": added(contender, (sample) => sample.alone.p99Ms),
      ...ratios("added, of", contender, addedAlone),
      "added p50 busy": added(contender, (sample) => sample.busy.p50Ms),
      "memory MB": residentMb(contender.pid),
      failed: total(contender, (sample) => sample.busy.failed + sample.alone.failed),
    })),
  );
  const streams = (contender: Contender): number => of(contender, (sample) => sample.streams.perSecond);
  table(
    `Streams of 100 events (${BUSY} connections)`,
    all.map((contender) => ({
      what: contender.name,
      "streams per second": streams(contender),
      ...ratios("of", contender, streams),
      "p50 ms": of(contender, (sample) => sample.streams.p50Ms),
      "p99 ms": of(contender, (sample) => sample.streams.p99Ms),
      failed: total(contender, (sample) => sample.streams.failed),
    })),
  );
  for (const size of SIZES) {
    const addedLong = (contender: Contender): number => added(contender, (sample) => sample.long[size].p50Ms);
    table(
      `Prompts of ${size} (one connection)`,
      all.map((contender) => ({
        what: contender.name,
        "p50 ms": of(contender, (sample) => sample.long[size].p50Ms),
        "added p50 ms": addedLong(contender),
        ...ratios("added, of", contender, addedLong),
        failed: total(contender, (sample) => sample.long[size].failed),
      })),
    );
  }
}

const PROMPT_BYTES = 300;

const withBody = ({ target }: Contender, stream: boolean, bytes = PROMPT_BYTES): RawTarget => ({
  ...target,
  body: JSON.stringify({
    model: "gpt-4o-mini",
    messages: [{ role: "user", content: "hello ".repeat(Math.ceil(bytes / 6)) }],
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
