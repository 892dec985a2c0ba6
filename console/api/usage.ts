/** What an account used and what it costs: sums over time, single events, prices. */
import { call } from "./call.ts";
import { useAnswer } from "./query.ts";
import { useWorkspaces } from "./workspaces.ts";

export interface UsageEntry {
  workspace?: string;
  resourceType?: string;
  resourceName?: string;
  billingDimension?: string;
  summary: { cost: number; usage?: number };
  timeseries: readonly { timestamp: string; cost: number; usage?: number }[];
}

export interface UsageAnswer {
  summary: { totalCost: number };
  data: readonly UsageEntry[];
  meta: { nextCursor: string };
}

export interface UsageEvent {
  workspace: string;
  resourceType: string;
  resourceName: string;
  billingDimension: string;
  usedBy?: string;
  startTime: string;
  endTime: string;
  usage: number;
  key: string;
}

export interface Price {
  dimension: string;
  unit: string;
  usd: string;
  from?: string;
}

export interface Repriced {
  summary: { totalCost: number; repricedCost: number };
  data: readonly { billingDimension: string; usage: number; cost: number; repricedCost: number }[];
}

/** What a question about usage is narrowed to; empty = everything. */
export interface UsageFilter {
  resourceType: string;
  resourceName: string;
  billingDimension: string;
}

export const DAY_MS = 86_400_000;
const EVERY_MS = 30_000;
const EVENTS_MAX = "200";
/** Pages of an export: 100 entries each. */
const EXPORTED_PAGES_MAX = 200;

export const useAccount = (workspace: string): string => {
  const { data } = useWorkspaces();
  return data?.find(({ name }) => name === workspace)?.accountId ?? "";
};

/** Whole days up to the end of today, UTC. */
export function windowOf(days: number): { startTime: string; endTime: string } {
  const end = Math.ceil(Date.now() / DAY_MS) * DAY_MS;
  return { startTime: new Date(end - days * DAY_MS).toISOString(), endTime: new Date(end).toISOString() };
}

const pathOf = (account: string): string => `/accounts/${account}/metrics`;

export interface UsageQuestion {
  workspace: string;
  account: string;
  groupBy: string;
  days: number;
}

export const useUsage = ({ workspace, account, groupBy, days }: UsageQuestion) =>
  useAnswer<UsageAnswer>({
    key: ["usage", account, groupBy, days],
    everyMs: EVERY_MS,
    enabled: account !== "",
    ask: (signal) => call({ path: pathOf(account), query: { ...windowOf(days), groupBy }, workspace, signal }),
  });

/** Every entry of the window by workspace, resource and dimension, a row for each day. */
export async function exportRows({ workspace, account, days }: Omit<UsageQuestion, "groupBy">): Promise<object[]> {
  const query = { ...windowOf(days), groupBy: "resource_name,billing_dimension", resolution: "daily" };
  const rows: object[] = [];
  for (let [cursor, page] = ["", 0]; page < EXPORTED_PAGES_MAX; page += 1) {
    const { data, meta } = await call<UsageAnswer>({ path: pathOf(account), query: { ...query, cursor }, workspace });
    for (const { timeseries, summary: _summary, ...names } of data)
      for (const { timestamp, usage = 0, cost } of timeseries)
        if (usage > 0 || cost > 0) rows.push({ ...names, timestamp, usage, cost });
    cursor = meta.nextCursor;
    if (cursor === "") break;
  }
  return rows;
}

export const useEvents = (
  workspace: string,
  account: string,
  window: { startTime: string; endTime: string },
  filter: UsageFilter,
) =>
  useAnswer<UsageEvent[]>({
    key: ["usage-events", account, window, filter],
    enabled: account !== "",
    ask: async (signal) => {
      const query = { ...window, ...filter, limit: EVENTS_MAX };
      return (await call<{ data: UsageEvent[] }>({ path: `${pathOf(account)}/events`, query, workspace, signal })).data;
    },
  });

export const usePrices = (workspace: string, account: string) =>
  useAnswer<Price[]>({
    key: ["prices", account],
    enabled: account !== "",
    ask: async (signal) =>
      (await call<{ price: Price[] }>({ path: `${pathOf(account)}/prices`, workspace, signal })).price,
  });

/** What the full hours of the last days would cost at other prices; nothing is changed. */
export const reprice = (
  workspace: string,
  account: string,
  days: number,
  price: readonly { dimension: string; usd: string }[],
): Promise<Repriced> =>
  call({ method: "POST", path: `${pathOf(account)}/reprice`, body: { ...windowOf(days), price }, workspace });
