/**
 * The usage ledger: how fast events go in against bare batched inserts, how fast the typical questions are answered
 * from the rollups against the same questions on the raw events, and how that grows with history at a fixed window.
 *
 * Flags: --events=N (default 1000000; 10000000 is the full size and takes some ten minutes and 4 GB of disk),
 * --resources=N (default events / 200), --postgres=URL (an empty database, instead of SQLite).
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sql } from "kysely";
import { createCursorCodec } from "../src/contract/cursor.ts";
import { HOUR_MS, systemClock } from "../src/lib/clock.ts";
import { hourMs, hourOf, hourToRfc3339, nextMonthStart } from "../src/lib/utc-calendar.ts";
import { accountMetrics } from "../src/metering/account-metrics.ts";
import { DIMENSION_NAMES } from "../src/metering/dimensions.ts";
import { parseMetricsQuery } from "../src/metering/metrics-query.ts";
import { createPriceBook, rateOf } from "../src/metering/price-book.ts";
import { openStore, type Store } from "../src/store/store.ts";
import type { UsageEvent } from "../src/store/usage-port.ts";
import { percentiles, table } from "./measure.ts";

const ACCOUNT = "bench";
/** History ends here; more of it reaches further back. */
const END = "2026-01-01T00:00:00Z";
const END_HOUR = hourOf(Date.parse(END));
const HISTORY_HOURS = 730 * 24;
const WORKSPACES = 20;
const EVENTS_PER_RESOURCE = 200;
const ROUNDS = 25;
const RAW_ROUNDS = 3;
/** Shares of the full history at which the questions are asked. */
const STAGES = [0.125, 0.25, 0.5, 1];

const book = createPriceBook();
const cursors = createCursorCodec(Buffer.alloc(32, 1));

export async function run(flags: string[]): Promise<void> {
  const flag = (name: string): string | undefined =>
    flags.find((text) => text.startsWith(`--${name}=`))?.slice(name.length + 3);
  const events = Number(flag("events") ?? 1_000_000);
  const resources = Number(flag("resources") ?? events / EVENTS_PER_RESOURCE);
  const dir = mkdtempSync(join(tmpdir(), "berth-bench-"));
  const store = await openStore({
    databaseUrl: flag("postgres") ?? null,
    dataDir: dir,
    secretKey: Buffer.alloc(32, 1),
    clock: systemClock,
    onError: (error) => console.error(error),
  });
  try {
    await ingest(store, dir);
    await questions(store, dir, events, resources);
    console.log("\nDuckDB: skipped; it is not installed here.");
  } finally {
    await store.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Events per second into the ledger, rollups included, against bare inserts of the same rows in the same batches. */
async function ingest(store: Store, dir: string): Promise<void> {
  const BATCH = 500;
  const BATCHES = 60;
  const batches = Array.from({ length: BATCHES }, (_, n) =>
    // Fifteen hours of two thousand lines: every event makes a row in each level that knows names.
    Array.from({ length: BATCH }, (_, k) => hourEvent((n % 4) * BATCH + k, 100_000 + Math.floor(n / 4), "ingest")),
  );
  const bare = new DatabaseSync(join(dir, "bare.sqlite"));
  bare.exec(
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (start_ms INTEGER, name TEXT, dimension TEXT, end_ms INTEGER, quantity INTEGER, key TEXT, PRIMARY KEY (start_ms, name, dimension, key)) WITHOUT ROWID",
  );
  const insert = bare.prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)");
  const bareStarted = performance.now();
  for (const batch of batches) {
    bare.exec("BEGIN");
    for (const { series, startMs, endMs, quantity, key } of batch)
      insert.run(startMs, series.resourceName, series.dimension, endMs, quantity, key);
    bare.exec("COMMIT");
  }
  const barePerSecond = (BATCH * BATCHES * 1000) / (performance.now() - bareStarted);
  bare.close();
  const started = performance.now();
  for (const batch of batches) await store.usage.record({ events: batch }, rateOf(book));
  const perSecond = (BATCH * BATCHES * 1000) / (performance.now() - started);
  const again = performance.now();
  for (const batch of batches) await store.usage.record({ events: batch }, rateOf(book));
  const againPerSecond = (BATCH * BATCHES * 1000) / (performance.now() - again);
  table("Events in, 500 a batch, durable", [
    { what: "bare SQLite inserts", "per second": barePerSecond, ratio: 1 },
    { what: "ledger: event and seven rollup levels", "per second": perSecond, ratio: perSecond / barePerSecond },
    { what: "ledger: the same again (no change)", "per second": againPerSecond, ratio: againPerSecond / barePerSecond },
  ]);
}

const at = (hour: number): string => hourToRfc3339(hour);

const QUESTIONS: Record<string, { query: Record<string, string>; raw: string }> = {
  "30 days daily by type": {
    query: { startTime: at(END_HOUR - 30 * 24), endTime: END, groupBy: "resource_type" },
    raw: "SELECT s.resource_type, e.start_ms / 86400000 AS b, SUM(e.quantity) FROM usage_events e JOIN usage_series s ON s.id = e.series_id WHERE s.account = {account} AND e.start_ms >= {start} AND e.start_ms < {end} GROUP BY 1, 2",
  },
  "7 days hourly by name": {
    query: { startTime: at(END_HOUR - 7 * 24), endTime: END, groupBy: "resource_name", resolution: "hourly" },
    raw: "SELECT s.workspace, s.resource_type, s.resource_name, e.start_ms / 3600000 AS b, SUM(e.quantity) FROM usage_events e JOIN usage_series s ON s.id = e.series_id WHERE s.account = {account} AND e.start_ms >= {start} AND e.start_ms < {end} GROUP BY 1, 2, 3, 4",
  },
  "1 year weekly by workspace x type": {
    query: {
      startTime: "2025-01-01T00:00:00Z",
      endTime: END,
      groupBy: "workspace,resource_type",
      resolution: "weekly",
    },
    raw: "SELECT s.workspace, s.resource_type, (e.start_ms / 3600000 + 72) / 168 AS b, SUM(e.quantity) FROM usage_events e JOIN usage_series s ON s.id = e.series_id WHERE s.account = {account} AND e.start_ms >= {start} AND e.start_ms < {end} GROUP BY 1, 2, 3",
  },
  "2 years monthly by dimension": {
    query: { startTime: "2024-01-01T00:00:00Z", endTime: END, groupBy: "billing_dimension" },
    raw: "SELECT s.dimension, e.start_ms / 2592000000 AS b, SUM(e.quantity) FROM usage_events e JOIN usage_series s ON s.id = e.series_id WHERE s.account = {account} AND e.start_ms >= {start} AND e.start_ms < {end} GROUP BY 1, 2",
  },
  "30 days to the minute, by name": {
    query: {
      startTime: new Date(hourMs(END_HOUR - 30 * 24) + 17 * 60_000).toISOString(),
      endTime: new Date(hourMs(END_HOUR) - 13 * 60_000).toISOString(),
      groupBy: "resource_name",
    },
    raw: "SELECT s.workspace, s.resource_type, s.resource_name, e.start_ms / 86400000 AS b, SUM(e.quantity) FROM usage_events e JOIN usage_series s ON s.id = e.series_id WHERE s.account = {account} AND e.start_ms >= {start} AND e.start_ms < {end} GROUP BY 1, 2, 3, 4",
  },
  "90 days daily of one resource": {
    query: { startTime: at(END_HOUR - 90 * 24), endTime: END, groupBy: "billing_dimension", resourceName: "r-3" },
    raw: "SELECT s.dimension, e.start_ms / 86400000 AS b, SUM(e.quantity) FROM usage_events e JOIN usage_series s ON s.id = e.series_id WHERE s.account = {account} AND s.resource_name = 'r-3' AND e.start_ms >= {start} AND e.start_ms < {end} GROUP BY 1, 2",
  },
};

async function questions(store: Store, dir: string, events: number, resources: number): Promise<void> {
  const rows: Record<string, string | number>[] = [];
  const first = new Map<string, number>();
  let filled = 0;
  for (const share of STAGES) {
    const started = performance.now();
    await fill(store, { events, resources, from: filled, to: share });
    filled = share;
    const seconds = (performance.now() - started) / 1000;
    const last = share === STAGES.at(-1);
    console.log(`\n${Math.round(events * share)} events in the ledger (${seconds.toFixed(0)} s to fill and sum)`);
    for (const [what, { query, raw }] of Object.entries(QUESTIONS)) {
      const ours = percentiles(await measure(ROUNDS, () => ask(store, query)));
      first.set(what, first.get(what) ?? ours.p50Ms);
      const rawMs = last ? percentiles(await measure(RAW_ROUNDS, () => askRaw(store, query, raw))).p50Ms : 0;
      rows.push({
        question: what,
        events: Math.round(events * share),
        p50Ms: ours.p50Ms,
        p95Ms: ours.p95Ms,
        growth: ours.p50Ms / (first.get(what) ?? 1),
        ...(last ? { rawMs, "raw / rollups": rawMs / ours.p50Ms } : { rawMs: "", "raw / rollups": "" }),
      });
    }
  }
  rows.sort((a, b) => String(a.question).localeCompare(String(b.question)) || Number(a.events) - Number(b.events));
  table("Questions from the rollups; growth is against the first stage of the same question", rows);
  if (store.database.dialect === "sqlite")
    console.log(`\nDatabase: ${(statSync(join(dir, "berth.sqlite")).size / 2 ** 20).toFixed(0)} MB`);
}

async function ask(store: Store, query: Record<string, string>): Promise<void> {
  const deps = { ledger: store.usage, book, cursors, clock: systemClock };
  await accountMetrics(deps, ACCOUNT, parseMetricsQuery(query));
}

async function askRaw(store: Store, query: Record<string, string>, raw: string): Promise<void> {
  const { rows } = await sql<{ id: number }>`SELECT id FROM usage_accounts WHERE account_id = ${ACCOUNT}`.execute(
    store.database.read,
  );
  const text = raw
    .replace("{account}", String(rows[0]?.id))
    .replace("{start}", String(Date.parse(query.startTime ?? "")))
    .replace("{end}", String(Date.parse(query.endTime ?? "")));
  await store.database.report(sql.raw(text).compile(store.database.read));
}

async function measure(rounds: number, act: () => Promise<void>): Promise<number[]> {
  await act();
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const started = performance.now();
    await act();
    times.push(performance.now() - started);
  }
  return times;
}

/** Resources live for some days each, one after the other; the newest share of history is filled first. */
async function fill(
  store: Store,
  { events, resources, from, to }: { events: number; resources: number; from: number; to: number },
): Promise<void> {
  const startHour = END_HOUR - Math.round(HISTORY_HOURS * to);
  const endHour = END_HOUR - Math.round(HISTORY_HOURS * from);
  const first = Math.round(resources * from);
  const last = Math.round(resources * to);
  const lifeHours = Math.round(events / resources / 2);
  for (let start = first; start < last; start += 500) {
    const chunk: UsageEvent[] = [];
    for (let n = start; n < Math.min(last, start + 500); n += 1)
      chunk.push(hourEvent(2 * n, endHour), hourEvent(2 * n + 1, endHour));
    // Written once through the front door, so that the series exist; the bulk below goes straight to the events.
    await store.usage.record({ events: chunk }, rateOf(book));
  }
  const begin = (n: number): number => {
    const span = Math.max(1, endHour - startHour - lifeHours);
    return startHour + Math.floor(((n - first) / Math.max(1, last - first)) * span);
  };
  await bulkInsert(store, first, last, lifeHours, begin);
  const prices = { rateOf: rateOf(book), dimensions: DIMENSION_NAMES };
  for (let month = hourOf(Date.UTC(2024, 0)); month <= endHour; month = nextMonthStart(month)) {
    if (nextMonthStart(month) >= startHour)
      await store.usage.rebuild(ACCOUNT, hourMs(month), hourMs(month) + 1, prices);
  }
}

async function bulkInsert(
  store: Store,
  first: number,
  last: number,
  lifeHours: number,
  begin: (n: number) => number,
): Promise<void> {
  const ids = await store.database.report<{ id: number; resource_name: string }>(
    sql`SELECT id, resource_name FROM usage_series WHERE named = 1 AND resource_name LIKE 'r-%'`.compile(
      store.database.read,
    ),
  );
  const wanted = ids.filter(({ resource_name }) => {
    const n = Number(resource_name.slice(2));
    return n >= first && n < last;
  });
  for (let index = 0; index < wanted.length; index += 50) {
    const rows: string[] = [];
    for (const { id, resource_name } of wanted.slice(index, index + 50)) {
      const startHour = begin(Number(resource_name.slice(2)));
      for (let hour = startHour; hour < startHour + lifeHours; hour += 1)
        rows.push(`(${hourMs(hour)},${id},'b',${hourMs(hour + 1)},${(1 + (id % 8)) * 512 * HOUR_MS})`);
    }
    await store.write(({ queries }) =>
      sql
        .raw(
          `INSERT INTO usage_events (start_ms, series_id, event_key, end_ms, quantity) VALUES ${rows.join(",")} ON CONFLICT DO NOTHING`,
        )
        .execute(queries),
    );
  }
}

const TYPES = [
  ["sandbox", "sandbox_compute_runtime_gbs", "sandbox_image_storage_gbs"],
  ["agent", "agent_compute_runtime_gbs", "agent_image_storage_gbs"],
  ["job", "job_compute_runtime_gbs", "job_image_storage_gbs"],
  ["mcp_server", "mcp_server_compute_runtime_gbs", "mcp_server_image_storage_gbs"],
] as const;

/** An hour of line `n`; each resource has two lines. */
function hourEvent(n: number, hour: number, prefix = "r"): UsageEvent {
  const resource = Math.floor(n / 2);
  const [resourceType, compute, image] = TYPES[resource % TYPES.length] ?? TYPES[0];
  return {
    series: {
      accountId: prefix === "r" ? ACCOUNT : "ingest",
      workspace: `workspace-${resource % WORKSPACES}`,
      resourceType,
      resourceName: `${prefix}-${resource}`,
      resourceUuid: `uuid-${resource}`,
      dimension: n % 2 === 0 ? compute : image,
    },
    startMs: hourMs(hour),
    endMs: hourMs(hour + 1),
    quantity: 2048 * HOUR_MS,
    key: "b",
  };
}
