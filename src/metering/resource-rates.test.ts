import assert from "node:assert/strict";
import { test } from "node:test";
import { imageOf, instancesOn, keptRates, type MeteredRecord, runningRates } from "./resource-rates.ts";

const record = (kind: string, more: Partial<MeteredRecord> = {}): MeteredRecord => ({
  kind,
  spec: { runtime: { memory: 2048, image: "base:latest" } },
  state: {},
  status: "DEPLOYED",
  deletedAt: null,
  retired: false,
  ...more,
});

const instances = (...phases: string[]) => ({
  instances: phases.map((text, n) => {
    const [phase, node] = text.split("@");
    return { uid: `i${n}`, revision: null, phase, endpoint: { kind: "unix", node, dir: "/x" } };
  }),
});

test("what runs here uses its memory limit, what stands by keeps it", () => {
  const rows: [MeteredRecord, object][] = [
    [record("sandbox"), { sandbox_compute_runtime_gbs: 0, sandbox_snapshot_storage_gbs: 0 }],
    [
      record("sandbox", { state: instances("running@here") }),
      { sandbox_compute_runtime_gbs: 2048, sandbox_snapshot_storage_gbs: 0 },
    ],
    [
      record("sandbox", { state: instances("frozen@here") }),
      { sandbox_compute_runtime_gbs: 0, sandbox_snapshot_storage_gbs: 2048 },
    ],
    [
      record("agent", { state: instances("running@here", "running@here", "running@there", "frozen@here") }),
      { agent_compute_runtime_gbs: 4096 },
    ],
    [record("function", { state: instances("running@here") }), { mcp_server_compute_runtime_gbs: 2048 }],
    [record("agent", { spec: {}, state: instances("running@here") }), { agent_compute_runtime_gbs: 0 }],
    [record("volume", { state: instances("running@here") }), {}],
    [
      record("sandbox", { retired: true, state: instances("running@here") }),
      { sandbox_compute_runtime_gbs: 0, sandbox_snapshot_storage_gbs: 0 },
    ],
  ];
  for (const [given, rates] of rows) assert.deepEqual(runningRates(given, instancesOn(given, "here")), rates);
});

test("what exists takes up room until it is on its way out", () => {
  const rows: [MeteredRecord, number | null, object][] = [
    [record("volume", { spec: { size: 1024 } }), null, { volume_storage_gbs: 1024 }],
    [record("volume", { spec: { size: 1024 }, deletedAt: 5 }), null, { volume_storage_gbs: 0 }],
    [record("volume", { spec: { size: -3 } }), null, { volume_storage_gbs: 0 }],
    [record("drive", { spec: { size: 10 } }), null, { drive_storage_gbs: 10 }],
    [record("drive", { spec: {} }), null, { drive_storage_gbs: 0 }],
    [record("customdomain", { spec: { status: "verified" } }), null, { custom_domain_active_time_hours: 1 }],
    [record("customdomain", { spec: { status: "pending" } }), null, { custom_domain_active_time_hours: 0 }],
    [record("sandbox"), 300, { sandbox_image_storage_gbs: 300 }],
    [record("job"), 300, { job_image_storage_gbs: 300 }],
    [record("function"), null, { mcp_server_image_storage_gbs: 0 }],
    [record("agent", { retired: true }), 300, { agent_image_storage_gbs: 0 }],
    [record("policy"), null, {}],
  ];
  for (const [given, imageSizeMb, rates] of rows) assert.deepEqual(keptRates(given, imageSizeMb), rates);
});

test("only workloads have an image", () => {
  assert.equal(imageOf(record("sandbox")), "base:latest");
  assert.equal(imageOf(record("sandbox", { spec: { runtime: { image: 5 } } })), null);
  assert.equal(imageOf(record("volume")), null);
});
