import { isAccountAdmin } from "../../contract/caller.ts";
import { DAY_MS } from "../../lib/time/clock.ts";
import { accountMetrics as answerMetrics, resourceTypesOf } from "../../metering/account-metrics.ts";
import { DIMENSION_NAMES, DIMENSIONS, isDimension, usageOf } from "../../metering/dimensions.ts";
import { usageEventsPage } from "../../metering/events-page.ts";
import { GROUP_BY_NAMES, parseMetricsQuery, parseWindowQuery } from "../../metering/metrics-query.ts";
import { costToUsd, createPriceBook, rateOf } from "../../metering/price-book.ts";
import { invalidParameter, parseWindow } from "../../metering/window.ts";
import type { Store } from "../../store/store.ts";
import type { UsageView } from "../../store/usage/port.ts";
import { type Call, type Implementation, implement } from "../port.ts";
import {
  accountMetrics,
  accountMetricsGroupBy,
  accountMetricsRebuild,
  accountMetricsResourceTypes,
  accountPrices,
  accountReprice,
  accountUsageEvents,
} from "./metrics-operations.ts";

/** Longest window that one request may rebuild. A longer history is rebuilt window by window. */
const REBUILD_WINDOW_MAX_MS = 31 * DAY_MS;
/** Longest window that one request may reprice: one SQL statement prices every hour of the window again. */
const REPRICE_WINDOW_MAX_MS = 366 * DAY_MS;

export const metricsHandlers: readonly Implementation[] = [
  implement(accountMetrics, async (call, { store, prices, clock }) => {
    const query = parseMetricsQuery(call.query);
    const view = await viewOf(call, store);
    return answerMetrics({ ledger: store.usage, book: prices, cursors: store.cursors, clock }, view, query);
  }),

  implement(accountMetricsGroupBy, async () => ({ values: [...GROUP_BY_NAMES] })),

  implement(accountMetricsResourceTypes, async (call, { store, prices }) => {
    const window = parseWindowQuery(call.query);
    return {
      values: await resourceTypesOf({ ledger: store.usage, book: prices }, await viewOf(call, store), window),
    };
  }),

  implement(accountPrices, async (_call, { prices }) => ({
    currency: "USD" as const,
    price: prices.list().map(({ dimension, usd, from }) => ({
      dimension,
      unit: DIMENSIONS[dimension].unit,
      usd,
      ...(from ? { from } : {}),
    })),
  })),

  implement(accountReprice, async (call, { store, prices }) => {
    const { startTime, endTime, price } = call.body;
    const { startMs, endMs } = boundedWindow(startTime, endTime, REPRICE_WINDOW_MAX_MS);
    const other = { rateOf: rateOf(createPriceBook({ price }, prices)), dimensions: DIMENSION_NAMES };
    const rows = await store.usage.reprice(accountOf(call), startMs, endMs, other);
    const total = (of: "cost" | "repriced"): number => costToUsd(rows.reduce((sum, row) => sum + row[of], 0n));
    return {
      startTime,
      endTime,
      summary: { totalCost: total("cost"), repricedCost: total("repriced") },
      data: rows.map(({ dimension, quantity, cost, repriced }) => ({
        billingDimension: dimension,
        usage: isDimension(dimension) ? usageOf(dimension, quantity) : 0,
        cost: costToUsd(cost),
        repricedCost: costToUsd(repriced),
      })),
    };
  }),

  implement(accountMetricsRebuild, async (call, { store, prices }) => {
    const { startTime, endTime } = call.body;
    const { startMs, endMs } = boundedWindow(startTime, endTime, REBUILD_WINDOW_MAX_MS);
    const booked = { rateOf: rateOf(prices), dimensions: DIMENSION_NAMES };
    await store.usage.rebuild(accountOf(call), startMs, endMs, booked);
    return { startTime, endTime };
  }),

  implement(accountUsageEvents, async (call, { store, clock }) =>
    usageEventsPage({ ledger: store.usage, cursors: store.cursors, clock }, accountOf(call), call.query),
  ),
];

const accountOf = ({ params }: Pick<Call, "params">): string => params.accountId ?? "";

/**
 * An account admin sees the whole account. Other people see only the workspaces of the account that they belong to now;
 * names and costs of the other workspaces are hidden in every grouping.
 */
async function viewOf(call: Pick<Call, "params" | "caller">, { workspaces }: Store): Promise<UsageView> {
  const accountId = accountOf(call);
  const { caller } = call;
  if (isAccountAdmin(caller, accountId)) return { accountId, workspaces: "all" };
  if (caller.bound) return { accountId, workspaces: [caller.bound.workspace] };
  const own = (await workspaces.listFor(caller.subject)).filter((workspace) => workspace.accountId === accountId);
  return { accountId, workspaces: own.map(({ name }) => name) };
}

function boundedWindow(startTime: string, endTime: string, lengthMaxMs: number): { startMs: number; endMs: number } {
  const { startMs, endMs } = parseWindow(startTime, endTime);
  if (endMs - startMs > lengthMaxMs) {
    throw invalidParameter("endTime", `must be at most ${lengthMaxMs / DAY_MS} days after startTime`);
  }
  return { startMs, endMs };
}
