import assert from "node:assert/strict";
import { test } from "node:test";
import type { InstanceLease, Workload } from "../gateway/deps.ts";
import { Activity } from "../lib/activity.ts";
import { Claims } from "./owner/claims.ts";
import { createLeases } from "./process/leases.ts";
import type { Ask } from "./process/questions.ts";
import { createRoutes } from "./process/routes.ts";

const workload: Workload = {
  ...{ kind: "sandbox", uid: "box", workspace: "main", name: "box", public: false, enabled: true },
  ...{ revisions: null, elsewhere: null, door: 3000, triggers: [], preview: null },
};
const instance = {
  ...{ uid: "box", revision: null, phase: "running" as const },
  endpoint: { kind: "unix" as const, node: "n", dir: "/none" },
};

/** A process and its owner with a direct line between them. */
function connected() {
  const activity = new Activity({ now: Date.now });
  let runs = true;
  let nowMs = 0;
  const asked: string[] = [];
  const claims = new Claims((uid) => (runs ? { key: uid, release: activity.begin(uid) } : null));
  const answers: Record<string, () => unknown> = {
    route: () => ({ workload, instances: [instance] }),
    claim: () => claims.take("box", "box"),
  };
  const ask = (async (name: string) => {
    asked.push(name);
    await Promise.resolve();
    return { value: answers[name]?.(), fresh: true };
  }) as Ask;
  const routes = createRoutes(ask, { now: Date.now });
  const leases = createLeases({ ask, routes, now: () => nowMs });
  return {
    ...{ activity, claims, routes, leases, asked },
    end: () => (runs = false),
    resolve: () => routes.resolve({ by: "name", kind: "sandbox", workspace: "main", name: "box" }),
    later: (ms: number) => {
      nowMs += ms;
      for (const count of leases.takeCounts(nowMs)) claims.count(count);
    },
  };
}

const isLease = (lease: InstanceLease | null): lease is InstanceLease => lease !== null;

test("an address alone claims nothing: only an admitted request keeps an instance awake", async () => {
  const { activity, resolve } = connected();
  await resolve();
  assert.equal(activity.lastOf("box"), 0);
});

test("requests of a process count at its owner, from before the first one until a moment after the last", async () => {
  const { activity, leases, resolve, later, asked } = connected();
  await resolve();
  const first = await Promise.all([leases.ready(workload, null), leases.ready(workload, null)]);
  assert.deepEqual(asked, ["route", "claim"], "requests of one moment share the question");
  assert.equal(activity.openOf("box"), 1);
  const all = [...first, await leases.ready(workload, null)].filter(isLease);
  assert.equal(all.length, 3);
  later(50);
  assert.equal(activity.openOf("box"), 3);
  for (const lease of all) lease.release();
  all[0]?.release();
  later(50);
  assert.equal(activity.openOf("box"), 1, "the claim is kept for a moment");
  later(300);
  assert.equal(activity.openOf("box"), 0);
  assert.notEqual(await leases.ready(workload, null), null);
  assert.deepEqual(asked, ["route", "claim", "claim"]);
});

test("an instance that no longer runs is left to the owner, and what was known of it is forgotten", async () => {
  const { leases, resolve, end, asked } = connected();
  await resolve();
  end();
  assert.equal(await leases.ready(workload, null), null);
  await resolve();
  assert.deepEqual(asked, ["route", "claim", "route"]);
});

test("the claims of a process that is gone are released", async () => {
  const { activity, claims, leases, resolve, later } = connected();
  await resolve();
  await leases.ready(workload, null);
  await leases.ready(workload, null);
  later(50);
  claims.release();
  assert.equal(activity.openOf("box"), 0);
});
