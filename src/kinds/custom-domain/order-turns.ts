/**
 * Shares the orders of certificates between workspaces. An authority bounds the orders of an account (Let's Encrypt:
 * 300 in three hours), and all workspaces of a platform have one account.
 */
import { HOUR_MS } from "../../lib/time/clock.ts";

/** Orders of one run; the rest waits for the next run. */
const ORDERS_MAX = 20;
/** Orders of one workspace within `ORDER_WINDOW_MS`. */
export const WORKSPACE_ORDERS_MAX = 50;
/** The three hours of the authority, and one more for clocks that differ. */
export const ORDER_WINDOW_MS = 4 * HOUR_MS;

/** The orders of one run: workspaces take turns, in the order in which they first appear. */
export function takeTurns<Order>(
  due: readonly Order[],
  workspaceOf: (order: Order) => string,
  recent: ReadonlyMap<string, number>,
): Order[] {
  const waiting = new Map<string, Order[]>();
  for (const order of due) {
    const workspace = workspaceOf(order);
    const queue = waiting.get(workspace) ?? [];
    if (queue.length + (recent.get(workspace) ?? 0) < WORKSPACE_ORDERS_MAX) waiting.set(workspace, [...queue, order]);
  }
  const turns = Array.from({ length: ORDERS_MAX }, (_, turn) =>
    [...waiting.values()].flatMap((queue) => queue.slice(turn, turn + 1)),
  );
  return turns.flat().slice(0, ORDERS_MAX);
}
