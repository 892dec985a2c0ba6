import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Observed } from "../../node/workload.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { type CopyObserved, type DeployObserved, type DeployStep, planDeploy } from "./deploy-plan.ts";
import { afterActivation, afterCrash, type Copy, type DeployState } from "./deploy-state.ts";

const NOW = 1_000_000_000;
const IDLE_MS = 10_000;

const workload = (change: Partial<Observed> = {}): Observed => ({
  uid: "x",
  node: "n",
  state: "running",
  grade: "mapped",
  endpoint: { kind: "unix", node: "n", dir: "/x" },
  limits: { memoryMb: 512, cpus: 1 },
  mounts: [],
  createdAt: new Date(NOW).toISOString(),
  pooled: false,
  oom: false,
  ...change,
});
const seen = (change: Partial<CopyObserved> = {}): CopyObserved => ({
  workload: workload(),
  listening: true,
  openRequests: 0,
  lastRequestMs: NOW,
  ...change,
});
const gone = (change: Partial<Observed>): CopyObserved => seen({ workload: workload({ state: "exited", ...change }) });
const copy = (uid: string, revision: string, phase: Copy["phase"], since = NOW): Copy => ({
  uid,
  revision,
  phase,
  since,
});
const bundle = { drive: "d", argv: ["a"] };
const built = { "1": { source: "s1", bundle } };

interface Case {
  state?: DeployState;
  resource?: Partial<Resource>;
  observed?: Partial<DeployObserved>;
  steps: DeployStep["do"][];
}

/** A settled, deployed revision 1 with one idle copy "a", changed by the row. */
const running: DeployState = { activeRevision: "1", revisions: built, copies: [copy("a", "1", "ready")] };
const two = { ...built, "2": { source: "s2", bundle } };

const trial = { spec: { revision: { active: "1", canary: "2", canaryPercent: 10 } } };

const CASES: Record<string, Case> = {
  "deployed and idle for a moment: nothing": { steps: [] },
  "deleted: everything goes": { resource: { deletedAt: 1 }, steps: ["retire"] },
  "switched off: everything stops": { resource: { spec: { enabled: false } }, steps: ["deactivate"] },
  "answered by the platform itself: what ran goes": { observed: { served: true }, steps: ["destroy"] },
  "answered by the platform itself, and changed: settled at once": {
    state: {},
    resource: { generation: 2 },
    observed: { served: true },
    steps: ["settle"],
  },
  "switched off and stopped: nothing": {
    resource: { spec: { enabled: false }, status: "DEACTIVATED" },
    state: {},
    steps: [],
  },
  "no code and no image: says so": { state: {}, resource: { observedGeneration: 0 }, steps: ["wait"] },
  "no code and said so: nothing": { state: {}, steps: [] },
  "whoever waits for code that was never sent is told at once": {
    state: { wantedAt: NOW, wantedRevision: "1" },
    steps: ["refuse"],
  },
  "and for an archive that may still come": {
    state: { wantedAt: NOW, wantedRevision: "1", upload: { revision: "1", nonce: "n", expiresAt: NOW + 1 } },
    steps: ["refuse"],
  },
  "told once": {
    state: { wantedAt: NOW, wantedRevision: "1", startFailure: { revision: "1", at: NOW, message: "" } },
    steps: [],
  },
  "who waits for a first build is not sent away": {
    state: { wantedAt: NOW, wantedRevision: "1", revisions: { "1": { source: "s" } } },
    observed: { builder: workload() },
    steps: [],
  },
  "an archive that may still come is waited for": {
    state: { upload: { revision: "1", nonce: "n", expiresAt: NOW + 1 } },
    steps: [],
  },
  "an archive that never came": { state: { upload: { revision: "1", nonce: "n", expiresAt: NOW } }, steps: ["fail"] },
  "code that has arrived is built": { state: { revisions: { "1": { source: "s" } } }, steps: ["build"] },
  "a build that runs is waited for": {
    state: { revisions: { "1": { source: "s" } } },
    observed: { builder: workload() },
    steps: [],
  },
  "a build that ended is looked at": {
    state: { revisions: { "1": { source: "s" } } },
    observed: { builder: workload({ state: "exited" }) },
    steps: ["finishBuild"],
  },
  "a build without end": {
    state: { revisions: { "1": { source: "s" } } },
    observed: { builder: workload({ createdAt: new Date(NOW - 3_600_000).toISOString() }) },
    steps: ["fail"],
  },
  "built code is started": { state: { revisions: built }, steps: ["start"] },
  "an image needs no code": { state: {}, observed: { images: ["1"] }, steps: ["start"] },
  "what runs on demand has no copies": { state: { revisions: built }, observed: { onDemand: true }, steps: ["adopt"] },
  "an image that runs on demand": { state: {}, observed: { images: ["1"], onDemand: true }, steps: ["adopt"] },
  "on demand and ready: nothing": {
    state: { activeRevision: "1", revisions: built },
    observed: { onDemand: true, minScale: 1 },
    steps: [],
  },
  "a slow watcher sees the build": {
    state: { revisions: { "1": { source: "s", bundle, uploadedAt: NOW - 1000 } } },
    observed: { slowWatcher: true },
    steps: [],
  },
  "a first copy that listens is switched to": {
    state: { revisions: built, copies: [copy("a", "1", "starting")] },
    steps: ["activate"],
  },
  "one that does not listen yet is waited for": {
    state: { revisions: built, copies: [copy("a", "1", "starting")] },
    observed: { copies: { a: seen({ listening: false }) } },
    steps: [],
  },
  "one that never listens": {
    state: { revisions: built, copies: [copy("a", "1", "starting", NOW - 61_000)] },
    observed: { copies: { a: seen({ listening: false }) } },
    steps: ["fail"],
  },
  "one that ends before it listens": {
    state: { revisions: built, copies: [copy("a", "1", "starting")] },
    observed: { copies: { a: gone({ exitCode: 1 }) } },
    steps: ["fail"],
  },
  "a new revision starts beside the old one": {
    state: { ...running, revisions: two },
    observed: { kept: ["2", "1"] },
    steps: ["start"],
  },
  "after the switch the old one drains": {
    state: {
      ...running,
      activeRevision: "2",
      revisions: two,
      copies: [copy("a", "1", "ready"), copy("b", "2", "ready")],
    },
    observed: { kept: ["2", "1"] },
    steps: ["drain"],
  },
  "a failed revision is not tried again, the old one goes on": {
    state: { ...running, revisions: { ...built, "2": { source: "s2", failed: "why" } } },
    resource: { status: "FAILED" },
    observed: { kept: ["2", "1"] },
    steps: [],
  },
  "the chosen revision counts, not the newest": {
    state: { ...running, revisions: two },
    resource: { spec: { revision: { active: "1" } } },
    observed: { kept: ["2", "1"] },
    steps: [],
  },
  "a canary with a share gets a copy when it is asked for": {
    state: { ...running, canaryRevision: "2", revisions: two, wantedRevision: "2", wantedAt: NOW },
    resource: trial,
    observed: { kept: ["2", "1"] },
    steps: ["start"],
  },
  "a canary that can run is admitted": {
    state: { ...running, revisions: two },
    resource: trial,
    observed: { kept: ["2", "1"] },
    steps: ["admit"],
  },
  "the code of a canary is built first": {
    state: { ...running, revisions: { ...built, "2": { source: "s2" } } },
    resource: trial,
    observed: { kept: ["2", "1"] },
    steps: ["build"],
  },
  "a canary that cannot be built is not admitted, and the active one goes on": {
    state: { ...running, canaryRevision: "2", revisions: { ...built, "2": { source: "s2", failed: "no" } } },
    resource: trial,
    observed: { kept: ["2", "1"] },
    steps: ["admit", "settle"],
  },
  "an archive for a canary is waited for": {
    state: { ...running, revisions: built, upload: { revision: "2", nonce: "n", expiresAt: NOW + 1 } },
    resource: trial,
    observed: { kept: ["2", "1"] },
    steps: [],
  },
  "a canary that is no longer named ends": {
    state: { ...running, canaryRevision: "2", revisions: two },
    resource: { spec: { revision: { active: "1" } } },
    observed: { kept: ["2", "1"] },
    steps: ["admit"],
  },
  "what only one can have is let go first": {
    state: { ...running, revisions: two },
    observed: { kept: ["2", "1"], exclusive: true },
    steps: ["drain"],
  },
  "a draining copy with requests stays": {
    state: { ...running, copies: [copy("a", "1", "ready"), copy("b", "1", "draining")] },
    observed: { copies: { a: seen(), b: seen({ openRequests: 1 }) } },
    steps: [],
  },
  "a drained copy goes": {
    state: { ...running, copies: [copy("a", "1", "ready"), copy("b", "1", "draining")] },
    steps: ["destroy"],
  },
  "an idle copy is let go": {
    state: { ...running, copies: [copy("a", "1", "ready", 0)] },
    observed: { copies: { a: seen({ lastRequestMs: NOW - IDLE_MS }) } },
    steps: ["drain"],
  },
  "a busy copy stays, however long": {
    state: { ...running, copies: [copy("a", "1", "ready", 0)] },
    observed: { copies: { a: seen({ openRequests: 1, lastRequestMs: 0 }) } },
    steps: [],
  },
  "minScale keeps idle copies": {
    state: { ...running, copies: [copy("a", "1", "ready", 0)] },
    observed: { minScale: 1, copies: { a: seen({ lastRequestMs: 0 }) } },
    steps: [],
  },
  "a request to nothing starts a copy": {
    state: { ...running, copies: [], wantedRevision: "1", wantedAt: NOW },
    steps: ["start"],
  },
  "nobody asks: nothing starts": { state: { ...running, copies: [] }, steps: [] },
  "many requests start another copy": { observed: { copies: { a: seen({ openRequests: 51 }) } }, steps: ["start"] },
  "but never more than maxScale": {
    observed: { maxScale: 1, copies: { a: seen({ openRequests: 500 }) } },
    steps: [],
  },
  "a cold start that listens gets requests": {
    state: { ...running, copies: [copy("a", "1", "starting")] },
    steps: ["ready"],
  },
  "a crash is told": { observed: { copies: { a: gone({ exitCode: 1 }) } }, steps: ["crashed"] },
  "who would wait long for the next start after many crashes is told at once": {
    state: {
      ...running,
      copies: [],
      wantedAt: NOW,
      wantedRevision: "1",
      crashes: { "1": { count: 5, lastAt: NOW - 1000 } },
      startFailure: { revision: "1", at: NOW - 1000, message: "exit code 1" },
    },
    steps: ["refuse"],
  },
  "after a crash the next start waits": {
    state: {
      ...running,
      copies: [],
      wantedRevision: "1",
      wantedAt: NOW,
      crashes: { "1": { count: 3, lastAt: NOW - 1000 } },
    },
    steps: [],
  },
  "and comes": {
    state: {
      ...running,
      copies: [],
      wantedRevision: "1",
      wantedAt: NOW,
      crashes: { "1": { count: 3, lastAt: NOW - 5000 } },
    },
    steps: ["start"],
  },
  "a new revision that the machine could not start waits too": {
    state: { ...running, revisions: two, crashes: { "2": { count: 3, lastAt: NOW - 1000, firstStarts: 3 } } },
    observed: { kept: ["2", "1"] },
    steps: [],
  },
  "and is tried again": {
    state: { ...running, revisions: two, crashes: { "2": { count: 3, lastAt: NOW - 5000, firstStarts: 3 } } },
    observed: { kept: ["2", "1"] },
    steps: ["start"],
  },
  "until its deploy fails": {
    state: { ...running, revisions: two, crashes: { "2": { count: 5, lastAt: NOW - 1000, firstStarts: 5 } } },
    observed: { kept: ["2", "1"] },
    steps: ["fail"],
  },
  "a canary that crashed again and again is tried at once when it is promoted": {
    state: { ...running, revisions: two, canaryRevision: "2", crashes: { "2": { count: 9, lastAt: NOW - 1000 } } },
    resource: { spec: { revision: { active: "2" } } },
    observed: { kept: ["2", "1"] },
    steps: ["start"],
  },
  "a copy that was never made is forgotten": {
    observed: { copies: { a: seen({ workload: null }) } },
    steps: ["destroy"],
  },
};

describe("the plan of a deployed workload", () => {
  for (const [name, { state = running, resource = {}, observed = {}, steps }] of Object.entries(CASES)) {
    test(name, () => {
      const plan = planDeploy({ ...base, ...resource, state: { ...state } }, { ...seenAll(state), ...observed }, NOW);
      assert.deepEqual(
        plan.steps.map((step) => step.do),
        steps,
      );
    });
  }

  test("out of memory is called by its name", () => {
    const plan = planDeploy(
      { ...base, state: { ...running } },
      { ...seenAll(running), copies: { a: gone({ oom: true, exitSignal: "SIGKILL" }) } },
      NOW,
    );
    assert.match(JSON.stringify(plan.steps), /out of memory/);
  });
});

const base: Resource = {
  uid: "u",
  workspace: "w",
  kind: "agent",
  parent: "",
  name: "n",
  metadata: {},
  spec: {},
  sealedSecrets: null,
  state: {},
  status: "DEPLOYED",
  events: [],
  generation: 1,
  observedGeneration: 1,
  version: 1,
  createdAt: 0,
  updatedAt: 0,
  deletedAt: null,
  createdBy: "",
  updatedBy: "",
  retired: false,
  node: null,
  statusAt: 0,
};

function seenAll({ copies = [] }: DeployState): DeployObserved {
  return {
    kept: ["1"],
    served: false,
    images: [],
    copies: Object.fromEntries(copies.map(({ uid }) => [uid, seen()])),
    builder: null,
    minScale: 0,
    maxScale: 10,
    exclusive: false,
    slowWatcher: false,
    idleAfterMs: IDLE_MS,
  };
}

test("crashes count against the first start only while the revision gets no requests", () => {
  const once = afterCrash(undefined, { nowMs: NOW, wasHealthy: false, wasLive: false });
  assert.deepEqual(once, { count: 1, lastAt: NOW, firstStarts: 1 });
  const twice = afterCrash(once, { nowMs: NOW + 1, wasHealthy: false, wasLive: false });
  assert.deepEqual(twice, { count: 2, lastAt: NOW + 1, firstStarts: 2 });
  const asCanary = afterCrash({ count: 8, lastAt: NOW }, { nowMs: NOW + 1, wasHealthy: false, wasLive: true });
  assert.deepEqual(asCanary, { count: 9, lastAt: NOW + 1 });
  assert.equal(afterCrash(asCanary, { nowMs: NOW + 2, wasHealthy: true, wasLive: true }).count, 1);
});

test("a revision that answers starts without crashes, and so does the one it replaces", () => {
  const crashes = { "1": { count: 9, lastAt: NOW }, "2": { count: 4, lastAt: NOW, firstStarts: 4 } };
  const state = afterActivation({ ...running, revisions: two, crashes }, "2", ["2", "1"]);
  assert.deepEqual(state.crashes, {});
  assert.deepEqual([state.activeRevision, state.previousRevision], ["2", "1"]);
  assert.deepEqual(afterActivation(state, "2", ["2"]).revisions, { "2": two["2"] });
  assert.equal(afterActivation(state, "2", ["2"]).previousRevision, "1");
});
