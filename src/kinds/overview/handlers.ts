import type { z } from "zod";
import { accountRefusal, scopeRefusal } from "../../auth/authorize.ts";
import type { Caller } from "../../contract/caller.ts";
import { hasLogsScope, withoutOutput } from "../../contract/crash-output.ts";
import { keptOf, mayEnter } from "../../contract/kept-access.ts";
import { DAY_MS, toIso } from "../../lib/time/clock.ts";
import { accountMetrics as askMetrics } from "../../metering/account-metrics.ts";
import { parseMetricsQuery } from "../../metering/metrics-query.ts";
import type { Workspace } from "../../store/people/workspaces.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { NO_STATUS } from "../../store/resources/status-counts.ts";
import { accountMetrics } from "../account/metrics-operations.ts";
import { listableKinds } from "../listable.ts";
import { type Call, type Implementation, implement, type Platform, workspaceOf } from "../port.ts";
import { FAILURES_MAX, overviewGet } from "./operations.ts";

type Overview = z.input<typeof overviewGet.response>;

export const overviewHandlers: readonly Implementation[] = [
  implement(overviewGet, async (call, deps) => {
    const { store, clock } = deps;
    const workspace = workspaceOf(call);
    const listable = listableKinds(call.caller);
    const outermost = listable.filter(({ within }) => !within).map(({ name }) => name);
    const [counts, failed, cost] = await Promise.all([
      store.resources.statusCountsIn(workspace.name),
      store.resources.listFailed(workspace.name, outermost, FAILURES_MAX),
      costToday(workspace, call.caller, deps),
    ]);
    const kinds = listable.map(({ name, plural }) => {
      const { [NO_STATUS]: bare = 0, ...statuses } = counts.get(name) ?? {};
      const total = Object.values(statuses).reduce((sum, n) => sum + n, bare);
      return { kind: name, plural, total, statuses };
    });
    const failures = failed.map((resource) => toFailure(resource, call));
    return { workspace: workspace.name, time: toIso(clock.now()), kinds, failures, ...(cost && { cost }) };
  }),
];

function toFailure(resource: Resource, { caller, role }: Pick<Call, "caller" | "role">): Overview["failures"][number] {
  const { kind, name, uid, status, events, statusAt } = resource;
  const event = events.findLast((one) => one.status === status && one.message !== undefined) ?? events.at(-1);
  const message = event?.message ?? "No reason is recorded.";
  const seesOutput = hasLogsScope(caller) && mayEnter(keptOf(resource), role);
  const reason = seesOutput ? message : withoutOutput(message);
  return { kind, name, uid, status: status ?? "", reason, time: toIso(statusAt) };
}

/** Undefined for callers who may not read the metrics of the workspace's account. */
async function costToday(
  { name, accountId }: Workspace,
  caller: Caller,
  { store, prices, clock }: Platform,
): Promise<Overview["cost"]> {
  if (scopeRefusal(accountMetrics, caller) ?? accountRefusal(accountMetrics, caller, accountId)) return undefined;
  const nowMs = clock.now();
  const since = toIso(nowMs - (nowMs % DAY_MS));
  const query = parseMetricsQuery({ startTime: since, endTime: toIso(nowMs + 1) });
  const { summary } = await askMetrics(
    { ledger: store.usage, book: prices, cursors: store.cursors, clock },
    { accountId, workspaces: [name] },
    query,
  );
  return { today: summary.totalCost, currency: "USD", since };
}
