/**
 * Shares the orders of certificates between workspaces. An authority bounds the orders of an account (Let's Encrypt:
 * 300 in three hours), and all workspaces of a platform have one account.
 */
import { HOUR_MS } from "../../lib/time/clock.ts";

/** Orders of one run; the rest waits for the next run. */
const ORDERS_MAX = 20;
/** Orders of all workspaces within `ORDER_WINDOW_MS`. The rest of the authority's 300 is the platform's own. */
export const TENANT_ORDERS_MAX = 250;
/** Orders of one workspace within `ORDER_WINDOW_MS`. */
export const WORKSPACE_ORDERS_MAX = 50;
/** The three hours of the authority, and one more for clocks that differ. */
export const ORDER_WINDOW_MS = 4 * HOUR_MS;

/** Stands for the platform itself among the workspaces. */
export const PLATFORM = "";

/**
 * The orders of one run. Workspaces take turns, and the workspace with the fewest recent orders begins. No workspace
 * has more recent orders than are left for all, so that n busy workspaces leave a share of 1 / (n + 1) to others.
 */
export function takeTurns<Order>(
  due: readonly Order[],
  workspaceOf: (order: Order) => string,
  recent: ReadonlyMap<string, number>,
): Order[] {
  const used = new Map(recent);
  const usedBy = (workspace: string): number => used.get(workspace) ?? 0;
  let left = TENANT_ORDERS_MAX;
  for (const [workspace, orders] of recent) if (workspace !== PLATFORM) left -= orders;
  const mayOrder = (workspace: string): boolean =>
    usedBy(workspace) < WORKSPACE_ORDERS_MAX && (workspace === PLATFORM || usedBy(workspace) < left);

  const waiting = [...Map.groupBy(due, workspaceOf)].sort(([one], [other]) => usedBy(one) - usedBy(other));
  const run: Order[] = [];
  for (let turn = 0; turn < ORDERS_MAX; turn += 1)
    for (const [workspace, queue] of waiting) {
      const order = queue[turn];
      if (order === undefined || run.length === ORDERS_MAX || !mayOrder(workspace)) continue;
      run.push(order);
      used.set(workspace, usedBy(workspace) + 1);
      if (workspace !== PLATFORM) left -= 1;
    }
  return run;
}
