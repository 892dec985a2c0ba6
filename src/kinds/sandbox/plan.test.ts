import assert from "node:assert/strict";
import { test } from "node:test";
import type { Observed } from "../../node/workload.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { fingerprint, planSandbox, type SandboxObserved } from "./plan.ts";

const NOW = 1_800_000_000_000;

const sandbox = (more: Partial<Resource> = {}): Resource => {
  const record: Resource = {
    uid: "u",
    workspace: "main",
    kind: "sandbox",
    parent: "",
    name: "s",
    metadata: {},
    spec: { runtime: { image: "i", memory: 512 } },
    sealedSecrets: null,
    state: {},
    status: "DEPLOYED",
    events: [],
    generation: 1,
    observedGeneration: 1,
    version: 1,
    createdAt: NOW - 60_000,
    updatedAt: NOW,
    deletedAt: null,
    createdBy: "",
    updatedBy: "",
    retired: false,
    node: null,
    statusAt: 0,
    ...more,
  };
  const state = {
    deployed: "same",
    idleSince: NOW - 60_000,
    instances: [{ uid: "u", revision: null, endpoint: null, phase: "running" }],
    ...record.state,
  };
  return { ...record, state };
};
const workload = (state: Observed["state"], more: Partial<Observed> = {}): Observed => ({
  uid: "u",
  node: "n",
  state,
  grade: "contained",
  endpoint: { kind: "unix", node: "n", dir: "/x" },
  limits: { memoryMb: 512, cpus: 1 },
  mounts: [],
  createdAt: "",
  pooled: false,
  oom: false,
  ...more,
});
const quiet = {
  processesRunning: 0,
  keepAlive: 0,
  awake: 0,
  terminalClients: 0,
  portConnections: 0,
  doorConnections: 0,
};
const observed = (more: Partial<SandboxObserved> = {}): SandboxObserved => ({
  workload: workload("running"),
  openRequests: 0,
  lastRequestMs: NOW - 1000,
  inside: quiet,
  standbyAfterMs: 15_000,
  freezes: true,
  builds: false,
  wanted: "same",
  ...more,
});

const onDisk = (hibernateAfter: string) => ({ runtime: { image: "i", memory: 512 }, lifecycle: { hibernateAfter } });
const frozen = { instances: [{ uid: "u", revision: null, endpoint: null, phase: "frozen" }], idleSince: NOW - 5000 };

const RESIZE = { id: "1", from: { memory: 512 }, to: { memory: 1024 } };

const TABLE: [string, Resource, SandboxObserved, string[]][] = [
  [
    "an archive that is awaited keeps a new sandbox from starting",
    sandbox({ status: "UPLOADING", state: { upload: { revision: "1", nonce: "", expiresAt: NOW + 1 } } }),
    observed({ workload: null }),
    [],
  ],
  [
    "an archive that did not come in time fails the sandbox",
    sandbox({ status: "UPLOADING", state: { upload: { revision: "1", nonce: "", expiresAt: NOW } } }),
    observed({ workload: null }),
    ["late"],
  ],
  [
    "an image is built before the sandbox starts",
    sandbox({ status: "BUILDING", state: { build: { source: "x", revision: "1" } } }),
    observed({ workload: null }),
    ["build"],
  ],
  [
    "a build that goes on is left alone",
    sandbox({ status: "BUILDING", state: { build: { source: "x", revision: "1" } } }),
    observed({ workload: null, builds: true }),
    [],
  ],
  [
    "a new record is made real",
    sandbox({ status: "DEPLOYING", observedGeneration: 0 }),
    observed({ workload: null }),
    ["create"],
  ],
  ["a running one is left alone", sandbox(), observed(), []],
  ["a running one is resized at a client's wish", sandbox({ state: { resize: RESIZE } }), observed(), ["resize"]],
  [
    "one in standby is resized, and not woken",
    sandbox({ state: { ...frozen, resize: RESIZE } }),
    observed({ workload: workload("frozen") }),
    ["resize"],
  ],
  [
    "a changed spec is started anew before an older wish is looked at",
    sandbox({ state: { resize: RESIZE } }),
    observed({ wanted: "other" }),
    ["destroy", "create"],
  ],
  [
    "a client's wish for sleep does not wait for what runs inside",
    sandbox({ state: { pausedAt: NOW - 500 } }),
    observed({ openRequests: 1, lastRequestMs: NOW, inside: { ...quiet, keepAlive: 1 } }),
    ["freeze"],
  ],
  [
    "a sandbox that woke after that wish stays awake",
    sandbox({ state: { pausedAt: NOW - 500, idleSince: NOW - 400 } }),
    observed(),
    [],
  ],
  [
    "a request that came after the wish for sleep wins",
    sandbox({ state: { pausedAt: NOW - 500, wantedAt: NOW - 400 } }),
    observed(),
    [],
  ],
  ["what vanished is made anew", sandbox(), observed({ workload: null }), ["create"]],
  ["what ended is started again", sandbox(), observed({ workload: workload("exited") }), ["restart"]],
  [
    "what ended and was changed is made anew",
    sandbox({ state: { deployed: "other" } }),
    observed({ workload: workload("exited") }),
    ["destroy", "create"],
  ],
  [
    "what another version of the platform deployed is taken over, with its files",
    sandbox({ state: { deployed: "9:same" } }),
    observed(),
    ["record"],
  ],
  [
    "unless it was changed meanwhile",
    sandbox({ state: { deployed: "9:same" }, generation: 2, observedGeneration: 1 }),
    observed(),
    ["destroy", "create"],
  ],
  ["another image is deployed anew", sandbox({ state: { deployed: "other" } }), observed(), ["destroy", "create"]],
  ["a failure stands", sandbox({ status: "FAILED" }), observed({ workload: null }), []],
  [
    "a failure ends with a new intent",
    sandbox({ status: "FAILED", generation: 2 }),
    observed({ workload: null }),
    ["create"],
  ],
  ["an idle one sleeps", sandbox(), observed({ lastRequestMs: NOW - 20_000 }), ["freeze"]],
  [
    "an idle one stays awake where the driver cannot freeze",
    sandbox(),
    observed({ lastRequestMs: NOW - 20_000, freezes: false }),
    [],
  ],
  ["a request keeps it awake", sandbox(), observed({ lastRequestMs: NOW - 20_000, openRequests: 1 }), []],
  [
    "a process keeps it awake",
    sandbox(),
    observed({ lastRequestMs: NOW - 20_000, inside: { ...quiet, keepAlive: 1 } }),
    [],
  ],
  ["an unknown inside keeps it awake", sandbox(), observed({ lastRequestMs: NOW - 20_000, inside: null }), []],
  [
    "one that sleeps in gVisor goes to disk when memory of the machine is short",
    sandbox({ state: { ...frozen, pressedAt: NOW - 1 } }),
    observed({ workload: workload("frozen", { grade: "vm-like" }) }),
    ["hibernate"],
  ],
  [
    "one that sleeps elsewhere, or could not be written since, stays where it is",
    sandbox({ state: { ...frozen, pressedAt: NOW - 10, hibernateTriedAt: NOW - 1 } }),
    observed({ workload: workload("frozen", { grade: "vm-like" }) }),
    [],
  ],
  [
    "one that is idle falls asleep early when memory of the machine is short",
    sandbox({ state: { pressedAt: NOW - 1 } }),
    observed({ lastRequestMs: NOW - 1000 }),
    ["freeze"],
  ],
  [
    "one that was used after it was chosen stays awake",
    sandbox({ state: { pressedAt: NOW - 1000 } }),
    observed({ lastRequestMs: NOW - 1 }),
    [],
  ],
  [
    "one that slept for hibernateAfter goes to disk",
    sandbox({ spec: onDisk("5s"), state: frozen }),
    observed({ workload: workload("frozen") }),
    ["hibernate"],
  ],
  [
    "one that slept for less sleeps on",
    sandbox({ spec: onDisk("6s"), state: frozen }),
    observed({ workload: workload("frozen") }),
    [],
  ],
  [
    "one on disk stays there",
    sandbox({ spec: onDisk("5s"), state: frozen }),
    observed({ workload: workload("frozen", { hibernated: true }) }),
    [],
  ],
  [
    "one that could not be written is tried again after the same time",
    sandbox({ spec: onDisk("5s"), state: { ...frozen, hibernateTriedAt: NOW - 1000 } }),
    observed({ workload: workload("frozen") }),
    [],
  ],
  ["a sleeping one sleeps on", sandbox({ state: frozen }), observed({ workload: workload("frozen") }), []],
  [
    "a wanted one wakes",
    sandbox({ state: { ...frozen, wantedAt: NOW } }),
    observed({ workload: workload("frozen") }),
    ["thaw"],
  ],
  [
    "an old wish wakes nobody",
    sandbox({ state: { ...frozen, wantedAt: NOW - 6000 } }),
    observed({ workload: workload("frozen") }),
    [],
  ],
  [
    "an old one expires",
    sandbox({ spec: { runtime: { image: "i", memory: 512, ttl: "30s" } } }),
    observed(),
    ["expire"],
  ],
  [
    "an unused one expires",
    sandbox({
      spec: {
        runtime: { image: "i", memory: 512 },
        lifecycle: { expirationPolicies: [{ type: "ttl-idle", value: "45s" }] },
      },
    }),
    observed(),
    ["expire"],
  ],
  [
    "a date ends it",
    sandbox({ spec: { runtime: { image: "i", memory: 512, expires: "2020-01-01T00:00:00Z" } } }),
    observed(),
    ["expire"],
  ],
  ["a deleted one goes", sandbox({ deletedAt: NOW }), observed(), ["destroy", "retire"]],
  ["a deleted one that is gone is retired", sandbox({ deletedAt: NOW }), observed({ workload: null }), ["retire"]],
  ["switched off", sandbox({ spec: { enabled: false } }), observed(), ["halt", "deactivate"]],
  [
    "switched off already",
    sandbox({ spec: { enabled: false }, status: "DEACTIVATED" }),
    observed({ workload: null }),
    [],
  ],
  ["an adopted one is recorded", sandbox({ state: { instances: [] } }), observed(), ["record"]],
];

for (const [name, record, seen, steps] of TABLE) {
  test(name, () =>
    assert.deepEqual(
      planSandbox(record, seen, NOW).steps.map((step) => step.do),
      steps,
    ),
  );
}

test("image, memory, variables, their secrets, ports and volumes make another machine", () => {
  const runtime = { image: "i", memory: 512 };
  const made = (spec: object, secrets = {}) => fingerprint({ spec: { runtime, ...spec } }, secrets);
  const others = [
    made({ runtime: { ...runtime, image: "j" } }),
    made({ runtime: { ...runtime, memory: 1024 } }),
    made({ runtime: { ...runtime, envs: [{ name: "A", value: "b" }] } }),
    made({ runtime: { ...runtime, ports: [{ target: 3000 }] } }),
    made({ runtime: { ...runtime, ports: [{ target: 3000 }, { target: 4000 }] } }),
    made({ volumes: [{ name: "v", mountPath: "/v" }] }),
    made({}, { "/spec/runtime/envs/A/value": "b" }),
  ];
  assert.equal(new Set([made({}), ...others]).size, others.length + 1);
});

test("metadata, lifetimes and network change in place", () => {
  const before = sandbox();
  const after = sandbox({
    metadata: { labels: { a: "b" } },
    spec: {
      ...before.spec,
      network: { allowedDomains: ["x"] },
      lifecycle: {},
      runtime: { image: "i", memory: 512, ttl: "1h", snapshotEnabled: true },
    },
  });
  const secrets = { "/spec/network/proxy/routing/0/secrets/key": "hush" };
  assert.equal(fingerprint(before, {}), fingerprint(after, secrets));
});

test("a fingerprint that an older version recorded without ports holds until another part of the sandbox changes", () => {
  const runtime = { image: "i", memory: 512, ports: [{ target: 3000 }] };
  // The fingerprint of this sandbox before ports were a part of it.
  const deployed = "2:cffcfaea9a029aeb";
  const stepsOf = (spec: Resource["spec"], state: Resource["state"], generation = 2) =>
    planSandbox(sandbox({ spec, generation, state }), observed({ wanted: fingerprint({ spec }, {}) }), NOW).steps.map(
      (step) => step.do,
    );
  assert.deepEqual(stepsOf({ runtime }, { deployed }, 1), ["record"], "the upgrade adds the ports to the fingerprint");
  assert.deepEqual(stepsOf({ runtime, lifecycle: {} }, { deployed }), ["record"]);
  assert.deepEqual(stepsOf({ runtime: { ...runtime, memory: 1024 } }, { deployed }), ["destroy", "create"]);
  const recorded = { deployed: fingerprint({ spec: { runtime } }, {}) };
  assert.deepEqual(stepsOf({ runtime }, recorded, 1), []);
  assert.deepEqual(stepsOf({ runtime: { ...runtime, ports: [{ target: 4000 }] } }, recorded), ["destroy", "create"]);
});

test("it is looked at again when something is due", () => {
  assert.equal(planSandbox(sandbox(), observed(), NOW).againMs, 14_000);
  const ttl = sandbox({ spec: { runtime: { image: "i", memory: 512, ttl: "65s" } } });
  assert.equal(planSandbox(ttl, observed(), NOW).againMs, 5000);
});

test("a start settles everything but drives, until it may sleep or must end", () => {
  const fresh = { status: "DEPLOYING", observedGeneration: 0, createdAt: NOW };
  const nothing = observed({ workload: null });
  const { settles, againMs } = planSandbox(sandbox(fresh), nothing, NOW);
  assert.deepEqual([settles, againMs], [true, 15_000]);
  const spec = { runtime: { image: "i", memory: 512, ttl: "5s" } };
  assert.equal(planSandbox(sandbox({ ...fresh, spec }), nothing, NOW).againMs, 5000);
  const driveMounts = [{ mountPath: "/data", phase: "wanted" }];
  assert.equal(planSandbox(sandbox({ ...fresh, state: { driveMounts } }), nothing, NOW).settles, undefined);
});

test("a sandbox that was gone says what was kept and what was lost", () => {
  const whyOf = (record: Resource, seen: SandboxObserved): string | undefined =>
    planSandbox(record, seen, NOW).steps.flatMap((step) => ("why" in step ? [step.why] : []))[0];
  const vanished = observed({ workload: null });
  assert.match(whyOf(sandbox(), vanished) ?? "", /was gone .* Kept: nothing, because .* Lost: every process/);
  const volumes = [
    { name: "data", mountPath: "/data" },
    { name: "scratch", mountPath: "/scratch", type: "ephemeral" },
  ];
  const attached = sandbox({ spec: { runtime: { image: "i", memory: 512 }, volumes } });
  assert.match(whyOf(attached, vanished) ?? "", /Kept: volume data at \/data\. Lost: /);
  const killed = observed({ workload: workload("exited", { oom: true }) });
  assert.match(whyOf(attached, killed) ?? "", /ran out of memory, files kept\. Lost: every process/);
});
