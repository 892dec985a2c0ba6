/** Billing on the command line; all data comes from the metrics API. */
import type { Client } from "../../client/client.ts";
import type { Operation } from "../../contract/operation.ts";
import { DAY_MS } from "../../lib/time/clock.ts";
import { parseDurationMs } from "../../lib/time/duration.ts";
import { dayStart, hourMs, hourOf, weekStart } from "../../lib/time/utc-calendar.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { connect, positiveNumber } from "./call-input.ts";
import { show } from "./show.ts";

export interface BillingOperations {
  accounts: Operation;
  metrics: Operation;
  events: Operation;
  rebuild: Operation;
}

interface Entry {
  workspace?: string;
  resourceType?: string;
  resourceName?: string;
  resourceUuid?: string;
  billingDimension?: string;
  summary: { cost: number };
  timeseries: { timestamp: string; cost: number; usage?: number }[];
}

interface Page<Item> {
  summary?: { totalCost: number };
  data: Item[];
  meta: { hasMore: boolean; nextCursor: string };
}

interface Window {
  startMs: number;
  endMs: number;
}

/** Columns of a table of resources, for rows with different members. */
const RESOURCE_COLUMNS = ["workspace", "resourceType", "resourceName", "resourceUuid", "billingDimension"];
const USAGE_COLUMNS = ["timestamp", ...RESOURCE_COLUMNS, "usage", "cost"];
const EVENT_COLUMNS = [...RESOURCE_COLUMNS, "usedBy", "startTime", "endTime", "usage", "key"];

const SINCE_DEFAULT_MS = 30 * DAY_MS;
const TOP_DEFAULT = 20;

/** The longest window per request for each resolution, in whole buckets. */
const CHUNKS: Record<string, (hour: number) => number> = {
  hourly: (hour) => dayStart(hour) + 7 * 24,
  daily: (hour) => dayStart(hour) + 90 * 24,
  weekly: (hour) => weekStart(hour) + 52 * 7 * 24,
  monthly: () => Number.POSITIVE_INFINITY,
};

const GROUPS: Record<string, { groupBy: string; nameOf(entry: Entry): string }> = {
  name: {
    groupBy: "resource_name",
    nameOf: ({ workspace, resourceType, resourceName }) => `${workspace}/${resourceType}/${resourceName}`,
  },
  type: { groupBy: "resource_type", nameOf: ({ resourceType = "" }) => resourceType },
  workspace: { groupBy: "workspace", nameOf: ({ workspace = "" }) => workspace },
  dimension: { groupBy: "billing_dimension", nameOf: ({ billingDimension = "" }) => billingDimension },
};

export async function top(operations: BillingOperations, call: Invocation): Promise<undefined> {
  let window = windowOf(call);
  const client = connect(call);
  const accountId = await accountOf(operations, client, call);
  const group = GROUPS[text(call.options.by) ?? "name"];
  const limit = Math.min(positiveNumber(call.options.limit, "--limit") ?? TOP_DEFAULT, 100);
  await show(call, null, "table", async () => {
    const { startTime, endTime } = times(window.startMs, window.endMs);
    // With --watch, each refresh uses a later window.
    window = windowOf(call);
    const page = await ask<Entry>(client, operations.metrics, accountId, {
      startTime,
      endTime,
      groupBy: group?.groupBy,
      limit,
    });
    const total = page.summary?.totalCost ?? 0;
    call.context.note(`${usd(total)} USD in all, ${startTime} to ${endTime}`);
    return page.data.map((entry) => ({
      name: group?.nameOf(entry) ?? "",
      usd: usd(entry.summary.cost),
      share: total > 0 ? `${((entry.summary.cost / total) * 100).toFixed(1)}%` : "",
      trend: sparkline(entry.timeseries.map(({ cost }) => cost)),
    }));
  });
}

export async function exportUsage(operations: BillingOperations, call: Invocation): Promise<undefined> {
  const window = windowOf(call);
  const client = connect(call);
  const accountId = await accountOf(operations, client, call);
  const single = call.options.events === true;
  const rows: AsyncIterable<object> = single
    ? entries<object>(client, operations.events, accountId, { ...times(window.startMs, window.endMs), limit: 1000 })
    : usageRows(operations, client, accountId, window, text(call.options.resolution) ?? "daily");
  const csv = (text(call.options.format) ?? "csv") === "csv";
  const columns = single ? EVENT_COLUMNS : USAGE_COLUMNS;
  let first = true;
  for await (const row of rows) {
    if (csv && first) call.context.print(columns.join(","));
    call.context.print(csv ? csvLine(row, columns) : JSON.stringify(row));
    first = false;
  }
  if (first) call.context.note("nothing was used in that time");
}

export async function rebuild(operations: BillingOperations, call: Invocation): Promise<undefined> {
  const window = windowOf(call);
  const client = connect(call);
  const accountId = await accountOf(operations, client, call);
  // One month at a time: each request computes the sums of all months it touches.
  for (const { startMs, endMs } of months(window)) {
    await client.call(operations.rebuild, { params: { accountId }, body: times(startMs, endMs) });
    call.context.note(`${new Date(startMs).toISOString().slice(0, 7)} rebuilt`);
  }
}

async function* usageRows(
  operations: BillingOperations,
  client: Client,
  accountId: string,
  window: Window,
  resolution: string,
) {
  for (let startMs = window.startMs; startMs < window.endMs; ) {
    const endMs = Math.min(window.endMs, hourMs(CHUNKS[resolution]?.(hourOf(startMs)) ?? 0));
    const query = { ...times(startMs, endMs), resolution, groupBy: "resource_uuid,billing_dimension" };
    for await (const { timeseries, summary: _summary, ...fields } of entries<Entry>(
      client,
      operations.metrics,
      accountId,
      query,
    )) {
      for (const { timestamp, usage = 0, cost } of timeseries) {
        if (usage > 0 || cost > 0) yield { timestamp, ...fields, usage, cost };
      }
    }
    startMs = endMs;
  }
}

async function* entries<Item>(
  client: Client,
  operation: Operation,
  accountId: string,
  query: Record<string, string | number>,
): AsyncGenerator<Item> {
  for (let cursor = ""; ; ) {
    const { data, meta } = await ask<Item>(client, operation, accountId, { ...query, ...(cursor ? { cursor } : {}) });
    yield* data;
    cursor = meta.nextCursor;
    if (!meta.hasMore) return;
  }
}

const ask = async <Item>(
  client: Client,
  operation: Operation,
  accountId: string,
  query: Record<string, string | number | undefined>,
): Promise<Page<Item>> => (await client.call(operation, { params: { accountId }, query })) as Page<Item>;

async function accountOf({ accounts }: BillingOperations, client: Client, { options }: Invocation): Promise<string> {
  const asked = text(options.account);
  if (asked) return asked;
  const found = (await client.call(accounts)) as { id: string; name: string }[];
  const [only] = found;
  if (only && found.length === 1) return only.id;
  const names = found.map(({ id, name }) => `${id} (${name})`).join(", ");
  throw new UsageError(`which account? These credentials see ${names || "none"}.`, "use --account ID");
}

function windowOf({ options, context }: Invocation): Window {
  const endMs = timeOf(text(options.end), "--end") ?? context.now();
  const since = text(options.since);
  const sinceMs = since === undefined ? SINCE_DEFAULT_MS : parseDurationMs(since);
  if (sinceMs === null) throw new UsageError(`--since ${since} is not a duration.`, "write it like 12h, 30d or 8w");
  const startMs = timeOf(text(options.start), "--start") ?? endMs - sinceMs;
  if (startMs >= endMs) throw new UsageError("the window is empty: its start must be before its end.");
  return { startMs, endMs };
}

function timeOf(given: string | undefined, option: string): number | undefined {
  if (given === undefined) return undefined;
  // A time needs a zone: without one it would be local time, and the bill that of another day.
  const ms = /^\d{4}-\d\d-\d\d(?:T.*(?:Z|[+-]\d\d:\d\d))?$/i.test(given) ? Date.parse(given) : Number.NaN;
  if (Number.isNaN(ms))
    throw new UsageError(`${option} ${given} is not a time.`, "write it like 2026-03-01 (UTC) or 2026-03-01T00:00:00Z");
  return ms;
}

function* months({ startMs, endMs }: Window): Generator<Window> {
  for (let from = startMs; from < endMs; ) {
    const date = new Date(from);
    const to = Math.min(endMs, Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1));
    yield { startMs: from, endMs: to };
    from = to;
  }
}

const times = (startMs: number, endMs: number) => ({
  startTime: new Date(startMs).toISOString(),
  endTime: new Date(endMs).toISOString(),
});

const BARS = "▁▂▃▄▅▆▇█";

function sparkline(values: readonly number[]): string {
  const highest = Math.max(...values, 0);
  const level = (value: number): number => (highest > 0 ? Math.round((value / highest) * (BARS.length - 1)) : 0);
  return values.map((value) => BARS[level(value)]).join("");
}

/** All digits and no exponent, which some spreadsheets cannot read. */
function decimal(value: number): string {
  const [digits = "", exponent] = String(value).split("e-");
  return exponent === undefined ? digits : `0.${"0".repeat(Number(exponent) - 1)}${digits.replace(".", "")}`;
}

const usd = (value: number): string => (value >= 1 ? value.toFixed(2) : value.toFixed(6));

const csvLine = (row: object, columns: readonly string[]): string =>
  columns.map((column) => csvCell((row as Record<string, unknown>)[column])).join(",");

/** Escapes a text that begins like a formula, which some spreadsheets would execute. */
function csvCell(value: unknown): string {
  if (typeof value === "number") return decimal(value);
  const cell = typeof value === "string" && /^[=+@-]/.test(value) ? `'${value}` : String(value ?? "");
  return /[",\n\r]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
