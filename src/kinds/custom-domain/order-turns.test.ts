import assert from "node:assert/strict";
import { test } from "node:test";
import { TENANT_ORDERS_MAX, takeTurns, WORKSPACE_ORDERS_MAX } from "./order-turns.ts";

const ordersOf = (workspace: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${workspace}/${index}`);
const workspaceOf = (order: string): string => order.split("/")[0] ?? "";

test("a workspace with a thousand domains keeps no other workspace waiting", () => {
  const due = [...ordersOf("greedy", 1000), ...ordersOf("small", 1), ...ordersOf("other", 2)];
  const run = takeTurns(due, workspaceOf, new Map());
  assert.equal(run.length, 20);
  assert.deepEqual(run.slice(0, 6), ["greedy/0", "small/0", "other/0", "greedy/1", "other/1", "greedy/2"]);
});

test("a workspace uses up a part of what the authority allows, and no more", () => {
  const due = [...ordersOf("greedy", 1000), ...ordersOf("small", 1)];
  const turns = (recent: number): string[] => takeTurns(due, workspaceOf, new Map([["greedy", recent]]));
  assert.deepEqual(turns(WORKSPACE_ORDERS_MAX), ["small/0"]);
  assert.deepEqual(turns(WORKSPACE_ORDERS_MAX - 1), ["small/0", "greedy/0"], "the quiet workspace begins");
});

test("many workspaces together leave a newcomer its turn, and the platform its own orders", () => {
  const greedy = Array.from({ length: 60 }, (_, at) => `greedy-${at}`);
  const recent = new Map<string, number>();
  for (let rounds = 0; rounds < 20; rounds += 1)
    for (const order of takeTurns(
      greedy.flatMap((name) => ordersOf(name, 100)),
      workspaceOf,
      recent,
    ))
      recent.set(workspaceOf(order), (recent.get(workspaceOf(order)) ?? 0) + 1);
  const total = [...recent.values()].reduce((sum, orders) => sum + orders, 0);
  assert.ok(total < TENANT_ORDERS_MAX, `${total}`);
  const due = [...greedy.flatMap((name) => ordersOf(name, 100)), ...ordersOf("newcomer", 2), ...ordersOf("", 1)];
  assert.ok(takeTurns(due, workspaceOf, recent).includes("newcomer/0"));
  recent.set("newcomer", TENANT_ORDERS_MAX - total);
  assert.deepEqual(takeTurns(due, workspaceOf, recent), ["/0"]);
});
