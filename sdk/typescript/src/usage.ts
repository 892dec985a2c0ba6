/** The bill: cost and usage of the account, and of models by their callers. */
import { defaultBerth, type WithBerth } from "./berth.ts";
import type { CallOptions } from "./core/call.ts";
import { BerthError } from "./core/errors.ts";
import type { Api } from "./generated/api.ts";

export type UsageReport = Awaited<ReturnType<Api["accountMetrics"]>>;
export type ModelUsageReport = Awaited<ReturnType<Api["modelUsage"]>>;

export interface UsageOptions extends CallOptions, WithBerth {
  /** Default: a day before the end. */
  since?: Date | undefined;
  /** Default: now. */
  until?: Date | undefined;
  /** Up to three of `workspace`, `resource_type`, `resource_name`, `resource_uuid`, `billing_dimension`. */
  by?: readonly string[] | undefined;
}

const DAY_MS = 86_400_000;

/** Cost and usage of the caller's account, the costliest first. */
export async function usage({
  berth = defaultBerth(),
  since,
  until,
  by = [],
  ...options
}: UsageOptions = {}): Promise<UsageReport> {
  const [account] = await berth.api.accountList(options);
  if (!account?.id) throw new BerthError({ code: "not_found", status: 404, message: "The caller has no account." });
  const query = { ...windowOf(since, until), ...(by.length === 0 ? {} : { groupBy: by.join(",") }) };
  return berth.api.accountMetrics({ ...options, params: { accountId: account.id }, query });
}

/** Tokens and cost of the workspace's models, by `model`, `key` or `workspace`. */
export async function modelUsage({
  berth = defaultBerth(),
  since,
  until,
  by = ["model"],
  ...options
}: UsageOptions = {}): Promise<ModelUsageReport> {
  return berth.api.modelUsage({ ...options, query: { ...windowOf(since, until), groupBy: by.join(",") } });
}

function windowOf(since: Date | undefined, until = new Date()): { startTime: string; endTime: string } {
  const start = since ?? new Date(until.getTime() - DAY_MS);
  return { startTime: start.toISOString(), endTime: until.toISOString() };
}
