/** HTTPS and HTTP/2 against nginx, with the same certificate and the same upstream, in turns. */
import { type ClientHttp2Session, connect } from "node:http2";
import { type Load, percentiles, table } from "../measure.ts";
import { shoot } from "./load.ts";
import { cpuTicks, middle, type Subject, TICK_MICROS } from "./subject.ts";

const ROUND_MS = 2000;
const WARM_UP_MS = 500;
const CONNECTIONS = 32;
/** The same number of requests at a time over HTTP/2. */
const SESSIONS = 4;
const STREAMS = CONNECTIONS / SESSIONS;

type Measured = Load & { count: number };

export async function secure(
  subjects: readonly Subject[],
  rounds: number,
  { request, path, headers }: { request: Buffer; path: string; headers: Record<string, string> },
): Promise<void> {
  const ways = {
    [`HTTPS (HTTP/1.1), ${CONNECTIONS} connections`]: (port: number, durationMs: number) =>
      shoot({ port, request, connections: CONNECTIONS, durationMs, secure: true }),
    [`HTTP/2, ${SESSIONS} connections with ${STREAMS} requests each`]: (port: number, durationMs: number) =>
      overHttp2(port, { ":path": path, ...headers }, durationMs),
  };
  for (const [title, way] of Object.entries(ways)) {
    const rows = new Map(subjects.map(({ name }) => [name, [] as (Measured & { cpuMicros: number })[]]));
    for (let round = 0; round <= rounds; round += 1)
      for (const subject of subjects) {
        const before = cpuTicks(subject);
        const load = await way(subject.port, round === 0 ? WARM_UP_MS : ROUND_MS);
        const cpuMicros = ((cpuTicks(subject) - before) * TICK_MICROS) / load.count;
        if (round > 0) rows.get(subject.name)?.push({ ...load, cpuMicros });
      }
    const cpuOf = (name: string): number => middle((rows.get(name) ?? []).map(({ cpuMicros }) => cpuMicros));
    table(
      title,
      [...rows].map(([what, loads]) => ({
        what,
        "per second": middle(loads.map(({ perSecond }) => perSecond)),
        p50Ms: middle(loads.map(({ p50Ms }) => p50Ms)),
        p99Ms: middle(loads.map(({ p99Ms }) => p99Ms)),
        "CPU µs each": cpuOf(what),
        "CPU of nginx": rows.has("nginx") ? cpuOf(what) / cpuOf("nginx") : "",
      })),
    );
  }
}

async function overHttp2(port: number, headers: Record<string, string>, durationMs: number): Promise<Measured> {
  const times: number[] = [];
  const started = performance.now();
  const until = started + durationMs;
  const sessions = Array.from({ length: SESSIONS }, () =>
    connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false }),
  );
  await Promise.all(
    sessions.flatMap((session) =>
      Array.from({ length: STREAMS }, async () => {
        while (performance.now() < until) times.push(await once(session, headers));
      }),
    ),
  );
  for (const session of sessions) session.destroy();
  return {
    perSecond: (times.length * 1000) / (performance.now() - started),
    count: times.length,
    ...percentiles(times),
  };
}

function once(session: ClientHttp2Session, headers: Record<string, string>): Promise<number> {
  const sentAt = performance.now();
  return new Promise((resolve, reject) => {
    const stream = session.request(headers);
    stream.on("response", ({ ":status": status }) => {
      if (status !== 200) reject(new Error(`answered ${status}`));
    });
    stream.on("error", reject);
    stream.on("data", () => {});
    stream.on("end", () => resolve(performance.now() - sentAt));
    stream.end();
  });
}
