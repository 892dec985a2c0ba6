/** What the token caps of a model leave to a caller in the windows that are open now. */
import { type Clock, toIso } from "../lib/time/clock.ts";
import type { Records } from "../store/records.ts";
import { capsOf } from "./admission.ts";
import type { PolicyRecord, Subject } from "./model-records.ts";
import { readStoredWindow } from "./stored-budget.ts";
import type { CappedPolicy } from "./token-budget.ts";
import { type CapScope, windowAt } from "./token-window.ts";

export interface BudgetLeft {
  policy: string;
  /** Whose requests are counted together. */
  per: CapScope;
  startTime: string;
  endTime: string;
  /** For each limit of the policy: the limit, what finished requests used, and what is left. */
  limits: { name: "input" | "output" | "total" | "requests"; limit: number; used: number; left: number }[];
}

export interface BudgetReportDeps {
  records: Pick<Records, "read">;
  clock: Clock;
}

/** A caller's requests without a session are one session: of a cap by session, this one is told. */
export async function budgetsLeft(
  deps: BudgetReportDeps,
  workspace: string,
  policies: readonly PolicyRecord[],
  subject: Subject,
): Promise<BudgetLeft[]> {
  const caps = capsOf({ workspace, subject, session: () => null }, policies);
  return Promise.all(caps.map((cap) => leftOf(deps, cap)));
}

async function leftOf({ records, clock }: BudgetReportDeps, { key, name, limits }: CappedPolicy): Promise<BudgetLeft> {
  const { startMs, endMs } = windowAt(limits, clock.now());
  const { used, requests } = await readStoredWindow(records, `${key}@${startMs}`);
  const amounts = { input: used.input, output: used.output, total: used.input + used.output, requests };
  return {
    policy: name,
    per: limits.per,
    startTime: toIso(startMs),
    endTime: toIso(endMs),
    limits: (["input", "output", "total", "requests"] as const)
      .filter((one) => limits[one] > 0)
      .map((one) => ({
        name: one,
        limit: limits[one],
        used: amounts[one],
        left: Math.max(0, limits[one] - amounts[one]),
      })),
  };
}
