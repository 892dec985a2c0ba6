import assert from "node:assert/strict";
import { test } from "node:test";
import { classify, type WorkloadRoute } from "../http/route.ts";
import type { Workload } from "./deps.ts";
import { asyncTriggerOf, enter, httpTriggersOf } from "./http-trigger.ts";

const TRIGGERS = [
  { id: "later", type: "http-async" },
  { id: "hook", type: "http", configuration: { path: "/hooks/a/", authenticationType: "public" } },
  { id: "deep", type: "http-async", configuration: { path: "hooks/a/b", authenticationType: "private" } },
  { id: "own", type: "http-async", configuration: { path: "agents/w/queue" } },
  { id: "off", type: "http", enabled: false, configuration: { path: "agents/w/off", authenticationType: "public" } },
  { id: "clock", type: "cron", configuration: { path: "hooks", schedule: "* * * * *" } },
];

const agent = (triggers: object[], isPublic = false): Workload =>
  ({
    kind: "agent",
    name: "w",
    public: isPublic,
    enabled: true,
    triggers: httpTriggersOf({ kind: "agent", name: "w", spec: { triggers } }),
  }) as unknown as Workload;

const route = (path: string) => classify(path, undefined, { isCustomDomain: () => false }) as WorkloadRoute;

test("the longest path of a trigger takes the request, and the workload sees what is behind it", () => {
  const cases: [string, string | null, string, string, boolean][] = [
    // path, trigger, prefix and path that the workload is told, whether anybody may call it
    ["/ws/agents/w/run?x=1", null, "/ws/agents/w", "/run?x=1", false],
    ["/ws/agents/w/queue", "own", "/ws/agents/w/queue", "/", false],
    ["/ws/agents/w/queue/x%2F?y", "own", "/ws/agents/w/queue", "/x%2F?y", false],
    ["/ws/agents/w/queued", null, "/ws/agents/w", "/queued", false],
    ["/ws/agents/w/off", null, "/ws/agents/w", "/off", false],
    ["/ws/hooks/a?q", "hook", "/ws/hooks/a", "/?q", true],
    ["/ws/hooks/a/c//d", "hook", "/ws/hooks/a", "/c//d", true],
    ["/ws/hooks/a/b/c", "deep", "/ws/hooks/a/b", "/c", false],
    ["/run/ws/hooks/a", "hook", "/run/ws/hooks/a", "/", true],
  ];
  for (const [path, id, prefix, rest, open] of cases) {
    const { route: entered, trigger, workload } = enter(route(path), agent(TRIGGERS));
    assert.deepEqual([path, trigger?.id ?? null, entered.prefix, entered.path], [path, id, prefix, rest]);
    assert.equal(workload.public, open, path);
  }
});

test("a trigger without a path speaks for the workload's own address", () => {
  const open = [{ id: "t", type: "http", configuration: { authenticationType: "public" } }];
  assert.equal(enter(route("/ws/agents/w/x"), agent(open)).workload.public, true);
  const closed = [{ id: "t", type: "http", configuration: { authenticationType: "private" } }];
  assert.equal(enter(route("/ws/agents/w/x"), agent(closed, true)).workload.public, false);
  assert.equal(enter(route("/ws/agents/w/x"), agent([{ id: "t", type: "http" }], true)).workload.public, true);
});

test("a request is asynchronous by its trigger or because it says so", () => {
  const workload = agent(TRIGGERS);
  const by = (id: string) => workload.triggers.find((trigger) => trigger.id === id) ?? null;
  const idOf = (found: ReturnType<typeof asyncTriggerOf>) => (found ? found.id : found);
  assert.equal(idOf(asyncTriggerOf(workload, by("own"), "/")), "own");
  assert.equal(idOf(asyncTriggerOf(workload, by("hook"), "/")), false);
  assert.equal(idOf(asyncTriggerOf(workload, null, "/x?async=true")), "later");
  assert.equal(idOf(asyncTriggerOf(agent([]), null, "/x?async=true")), null);
  assert.equal(idOf(asyncTriggerOf(workload, null, "/x?async=false&y=async=true")), false);
  assert.equal(idOf(asyncTriggerOf({ ...workload, kind: "function" }, null, "/?async=true")), false);
});
