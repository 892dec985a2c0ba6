import assert from "node:assert/strict";
import { test } from "node:test";
import type { Principal, Workload } from "./deps.ts";
import { openMaxOf } from "./limits.ts";
import { OpenExchanges } from "./open-exchanges.ts";

const WORKSPACE_MAX = 64;

const workloadIn = (workspace: string, name = "app"): Workload => ({
  ...{ kind: "application", uid: `${workspace}-${name}`, workspace, name, public: true, enabled: true },
  ...{ revisions: null, elsewhere: null, door: 80, triggers: [], preview: null },
});
const person: Principal = { id: "person", type: "user", method: "api_key" };

/** Opens as many as it gets, at most `times`. */
function fill(open: OpenExchanges, workload: Workload, principal: Principal | null, from: string, times = 10_000) {
  let got = 0;
  try {
    for (; got < times; got += 1) open.enter({ workload, principal }, from);
  } catch {}
  return got;
}

test("strangers at the public workloads of a workspace leave its own people their places", () => {
  const open = new OpenExchanges(openMaxOf(WORKSPACE_MAX));
  for (let i = 0; i < 8; i += 1) fill(open, workloadIn("shop", `app-${i}`), null, "203.0.113.1");
  fill(open, workloadIn("other"), person, "198.51.100.1", 1);
  assert.ok(fill(open, workloadIn("shop"), person, "198.51.100.1") >= 8);
});

test("one network does not fill the server through public workloads of many workspaces", () => {
  const open = new OpenExchanges(openMaxOf(WORKSPACE_MAX));
  for (let i = 0; i < 300; i += 1) fill(open, workloadIn(`team-${i}`), null, "203.0.113.1");
  assert.ok(open.total <= WORKSPACE_MAX, `${open.total} are open`);
  assert.ok(fill(open, workloadIn("team-1"), null, "198.51.100.1") >= 8, "another visitor");
});

test("networks without credentials leave a part of the server to callers with some", () => {
  const open = new OpenExchanges(openMaxOf(WORKSPACE_MAX));
  for (let i = 0; i < 300; i += 1) fill(open, workloadIn(`team-${i}`), null, `203.0.113.${i % 250}`);
  assert.ok(fill(open, workloadIn("late"), person, "198.51.100.1") >= 8);
});
