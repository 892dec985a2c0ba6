/**
 * The usage ledger: how fast events go in against bare batched inserts, how fast the typical questions are answered
 * from the rollups against the same questions on the raw events (and on DuckDB), and how that grows with history at a
 * fixed window.
 *
 * Flags: --events=N (default 1000000; 10000000 is the full size, some minutes and 1 GB of disk), --resources=N (default
 * events / 200), --rollups-only (sums without events) and --per-hour=N (events of a line in an hour; default 1), which
 * together stand for 100000000 events, --postgres=URL (an empty database, instead of SQLite), --dir=DIR (keeps the
 * ledger there and asks it again next time), --duckdb=DIR (a folder with @duckdb/node-api in its node_modules).
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type RawBuilder, sql } from "kysely";
import { createCursorCodec } from "../src/contract/cursor.ts";
import { systemClock } from "../src/lib/time/clock.ts";
import { hourMs, hourToRfc3339 } from "../src/lib/time/utc-calendar.ts";
import { accountMetrics } from "../src/metering/account-metrics.ts";
import { DIMENSION_NAMES } from "../src/metering/dimensions.ts";
import { parseMetricsQuery } from "../src/metering/metrics-query.ts";
import { createPriceBook, rateOf } from "../src/metering/price-book.ts";
import { unlockWith } from "../src/store/sealing/key-records.ts";
import { openStore, type Store } from "../src/store/store.ts";
import type { UsageEvent } from "../src/store/usage/port.ts";
import { openDuckDb, type RawAsker } from "./billing/duckdb.ts";
import { ACCOUNT, END, END_HOUR, fillLedger, historyStart, hourEvent, type Size } from "./billing/ledger-fill.ts";
import { percentiles, table } from "./measure.ts";

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
  const withEvents = !flags.includes("--rollups-only");
  const perHour = withEvents ? 1 : Number(flag("per-hour") ?? 1);
  const size = { events, resources, perHour, withEvents };
  const kept = flag("dir");
  if (kept) mkdirSync(kept, { recursive: true });
  const dir = kept ?? mkdtempSync(join(tmpdir(), "berth-bench-"));
  const store = await openStore({
    databaseUrl: flag("postgres") ?? null,
    dataDir: dir,
    unlock: unlockWith(Buffer.alloc(32, 1)),
    clock: systemClock,
    onError: (error) => console.error(error),
  });
  try {
    const filled = join(dir, `filled-${events}-${resources}`);
    const isFilled = existsSync(filled);
    if (size.withEvents) await ingest(store);
    if (!isFilled) await growth(store, size);
    writeFileSync(filled, "");
    await fullSize(store, size, dir, flag("duckdb"));
  } finally {
    await store.close();
    if (!kept) rmSync(dir, { recursive: true, force: true });
  }
}

const BATCH = 500;
const BATCHES = 60;

/** Events per second into the ledger, rollups included, against bare inserts of the same rows in the same batches. */
async function ingest(store: Store): Promise<void> {
  // Another account every time, so that a ledger that is kept does not know the events yet.
  const accountId = `ingest-${Date.now()}`;
  const batches = Array.from({ length: BATCHES }, (_, n) =>
    // Fifteen hours of two thousand lines: every event makes a row in each level that knows names.
    Array.from({ length: BATCH }, (_, k) => hourEvent((n % 4) * BATCH + k, 100_000 + Math.floor(n / 4), accountId)),
  );
  const bare = store.database.dialect === "sqlite" ? await bareSqlite(batches) : await barePostgres(store, batches);
  const record = () => perSecond(batches, (batch) => store.usage.record({ events: batch }, rateOf(book)));
  const rows = [
    { what: `bare inserts, ${store.database.dialect}`, "per second": bare },
    { what: "ledger: event and seven rollup levels", "per second": await record() },
    { what: "ledger: the same again (no change)", "per second": await record() },
  ];
  table(
    "Events in, 500 a batch, durable",
    rows.map((row) => ({ ...row, ratio: row["per second"] / bare })),
  );
}

async function bareSqlite(batches: readonly UsageEvent[][]): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), "berth-bench-"));
  const database = new DatabaseSync(join(dir, "bare.sqlite"));
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE ${BARE_TABLE} WITHOUT ROWID`);
  const insert = database.prepare("INSERT INTO bench_bare VALUES (?, ?, ?, ?, ?, ?)");
  const rate = await perSecond(batches, async (batch) => {
    database.exec("BEGIN");
    for (const event of batch) insert.run(...bareRow(event));
    database.exec("COMMIT");
  });
  database.close();
  rmSync(dir, { recursive: true });
  return rate;
}

async function barePostgres(store: Store, batches: readonly UsageEvent[][]): Promise<number> {
  const execute = (query: RawBuilder<unknown>) => store.write(({ queries }) => query.execute(queries));
  await execute(sql.raw(`CREATE TABLE ${BARE_TABLE}`));
  const rate = await perSecond(batches, (batch) =>
    execute(sql`INSERT INTO bench_bare VALUES ${sql.join(batch.map((event) => sql`(${sql.join(bareRow(event))})`))}`),
  );
  await execute(sql`DROP TABLE bench_bare`);
  return rate;
}

const BARE_TABLE =
  "bench_bare (start_ms BIGINT, name TEXT, dimension TEXT, end_ms BIGINT, quantity BIGINT, key TEXT, PRIMARY KEY (start_ms, name, dimension, key))";

const bareRow = ({ series, startMs, endMs, quantity, key }: UsageEvent): (string | number)[] => [
  startMs,
  series.resourceName,
  series.dimension,
  endMs,
  quantity,
  key,
];

async function perSecond(
  batches: readonly UsageEvent[][],
  write: (batch: UsageEvent[]) => Promise<unknown>,
): Promise<number> {
  const started = performance.now();
  for (const batch of batches) await write(batch);
  return (BATCH * BATCHES * 1000) / (performance.now() - started);
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

/** History is filled from its newest part backwards; the questions are asked of the same window every time. */
async function growth(store: Store, size: Size): Promise<void> {
  const rows: Record<string, string | number>[] = [];
  const first = new Map<string, number>();
  let filled = 0;
  for (const share of STAGES) {
    const started = performance.now();
    await fillLedger(store, size, filled, share);
    filled = share;
    const events = Math.round(size.events * share);
    console.log(`${events} events are in the ledger (${((performance.now() - started) / 1000).toFixed(0)} s)`);
    for (const [what, { query }] of Object.entries(QUESTIONS)) {
      // Longer windows are not full before the last stage.
      if (Date.parse(query.startTime ?? "") < hourMs(historyStart(STAGES[0] ?? 0))) continue;
      const { p50Ms, p95Ms, cpuMs } = await measure(ROUNDS, () => ask(store, query));
      // On a busy machine the time on the processor says more; on PostgreSQL it is spent in another process.
      const spentMs = store.database.dialect === "sqlite" ? cpuMs : p50Ms;
      first.set(what, first.get(what) ?? spentMs);
      rows.push({ question: what, events, p50Ms, p95Ms, cpuMs, growth: spentMs / (first.get(what) ?? 1) });
    }
  }
  if (size.withEvents) await assertSums(store);
  rows.sort((a, b) => String(a.question).localeCompare(String(b.question)) || Number(a.events) - Number(b.events));
  table("The same window with more and more history behind it", rows);
}

/** What the filling wrote down must be what the ledger itself makes of the events. */
async function assertSums(store: Store): Promise<void> {
  const query = { startTime: "2025-12-01T00:00:00Z", endTime: END, groupBy: "billing_dimension" };
  const before = JSON.stringify(await ask(store, query));
  const [startMs, endMs] = [Date.parse(query.startTime), Date.parse(query.endTime)];
  await store.usage.rebuild(ACCOUNT, startMs, endMs, { rateOf: rateOf(book), dimensions: DIMENSION_NAMES });
  if (JSON.stringify(await ask(store, query)) !== before) throw new Error("the ledger was filled with wrong sums");
}

async function fullSize(store: Store, size: Size, dir: string, duckDir: string | undefined): Promise<void> {
  const duck = duckDir && size.withEvents ? await openDuckDb(duckDir, dir, store) : null;
  const account = await accountNumber(store);
  const rows: Record<string, string | number>[] = [];
  for (const [what, { query, raw }] of Object.entries(QUESTIONS)) {
    const text = raw
      .replace("{account}", String(account))
      .replace("{start}", String(Date.parse(query.startTime ?? "")))
      .replace("{end}", String(Date.parse(query.endTime ?? "")));
    const { p50Ms, p95Ms, cpuMs } = await measure(ROUNDS, () => ask(store, query));
    const others: [string, RawAsker | null][] = [
      ["raw", size.withEvents ? { ask: (asked) => askRaw(store, asked) } : null],
      ["DuckDB raw", duck],
    ];
    const row: Record<string, string | number> = { question: what, p50Ms, p95Ms, cpuMs };
    for (const [name, asker] of others) {
      const otherMs = asker ? (await measure(RAW_ROUNDS, () => asker.ask(text))).p50Ms : "";
      row[`${name} ms`] = otherMs;
      row[`${name} / ours`] = otherMs === "" ? "" : otherMs / p50Ms;
    }
    rows.push(row);
  }
  table(`${size.events} events of ${size.resources} resources over two years, on ${store.database.dialect}`, rows);
  if (!duck)
    console.log("\nDuckDB: skipped; install @duckdb/node-api somewhere and give that folder with --duckdb=DIR.");
  if (store.database.dialect === "sqlite")
    console.log(`\nDatabase: ${(statSync(join(dir, "berth.sqlite")).size / 2 ** 20).toFixed(0)} MB`);
}

const accountNumber = async (store: Store): Promise<number> => {
  const { rows } = await sql<{ id: number }>`SELECT id FROM usage_accounts WHERE account_id = ${ACCOUNT}`.execute(
    store.database.read,
  );
  return rows[0]?.id ?? 0;
};

const ask = (store: Store, query: Record<string, string>): Promise<unknown> =>
  accountMetrics(
    { ledger: store.usage, book, cursors, clock: systemClock },
    { accountId: ACCOUNT, workspaces: "all" },
    parseMetricsQuery(query),
  );

const askRaw = (store: Store, text: string): Promise<unknown> =>
  store.database.report(sql.raw(text).compile(store.database.read));

/** CPU time is that of this process with all its threads: the database's too on SQLite, not on PostgreSQL. */
async function measure(
  rounds: number,
  act: () => Promise<unknown>,
): Promise<{ p50Ms: number; p95Ms: number; cpuMs: number }> {
  await act();
  const times: number[] = [];
  const before = process.cpuUsage();
  for (let round = 0; round < rounds; round += 1) {
    const started = performance.now();
    await act();
    times.push(performance.now() - started);
  }
  const { user, system } = process.cpuUsage(before);
  return { ...percentiles(times), cpuMs: (user + system) / 1000 / rounds };
}
