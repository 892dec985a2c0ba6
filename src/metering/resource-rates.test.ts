import assert from "node:assert/strict";
import { test } from "node:test";
import { instancesOf, keptRates, type MeteredRecord, runningRates, storedOf } from "./resource-rates.ts";

const record = (kind: string, more: Partial<MeteredRecord> = {}): MeteredRecord => ({
  kind,
  name: "n",
  uid: "u",
  spec: { runtime: { memory: 2048, image: "base:latest" } },
  state: {},
  deletedAt: null,
  retired: false,
  ...more,
});

const instances = (...phases: string[]) => ({
  instances: phases.map((phase, n) => ({ uid: `i${n}`, revision: null, phase, endpoint: null })),
});

test("what runs uses its memory limit, what stands by uses nothing", () => {
  const rows: [MeteredRecord, object][] = [
    [record("sandbox"), { sandbox_compute_runtime_gbs: 0 }],
    [record("sandbox", { state: instances("running") }), { sandbox_compute_runtime_gbs: 2048 }],
    [record("sandbox", { state: instances("frozen") }), { sandbox_compute_runtime_gbs: 0 }],
    [record("agent", { state: instances("running", "running", "frozen") }), { agent_compute_runtime_gbs: 4096 }],
    [record("function", { state: instances("running") }), { mcp_server_compute_runtime_gbs: 2048 }],
    [record("agent", { spec: {}, state: instances("running") }), { agent_compute_runtime_gbs: 0 }],
    [record("volume", { state: instances("running") }), {}],
    [record("sandbox", { retired: true, state: instances("running") }), { sandbox_compute_runtime_gbs: 0 }],
  ];
  for (const [given, rates] of rows) assert.deepEqual(runningRates(given, instancesOf(given)), rates);
});

test("what exists takes up room until it is on its way out", () => {
  const rows: [MeteredRecord, number | null, object][] = [
    [record("volume", { spec: { size: 1024 } }), null, { volume_storage_gbs: 1024 }],
    [record("volume", { spec: { size: 1024 }, deletedAt: 5 }), null, { volume_storage_gbs: 0 }],
    [record("volume", { spec: { size: -3 } }), null, { volume_storage_gbs: 0 }],
    [record("drive", { spec: { size: 10 } }), 7, { drive_storage_gbs: 7 }],
    [record("drive"), null, { drive_storage_gbs: 0 }],
    [record("drive", { deletedAt: 5 }), 7, { drive_storage_gbs: 0 }],
    [record("customdomain", { spec: { status: "verified" } }), null, { custom_domain_active_time_hours: 1 }],
    [record("customdomain", { spec: { status: "pending" } }), null, { custom_domain_active_time_hours: 0 }],
    [record("sandbox"), 300, { sandbox_image_storage_gbs: 300 }],
    [record("snapshot"), 70, { sandbox_snapshot_storage_gbs: 70 }],
    [record("volumesnapshot"), 70, { volume_snapshot_storage_gbs: 70 }],
    [record("volumesnapshot", { deletedAt: 5 }), 70, { volume_snapshot_storage_gbs: 0 }],
    [record("snapshot", { deletedAt: 5 }), 70, { sandbox_snapshot_storage_gbs: 0 }],
    [record("job"), 300, { job_image_storage_gbs: 300 }],
    [record("function"), null, { mcp_server_image_storage_gbs: 0 }],
    [record("agent", { retired: true }), 300, { agent_image_storage_gbs: 0 }],
    [record("policy"), null, {}],
  ];
  for (const [given, storedMb, rates] of rows) assert.deepEqual(keptRates(given, storedMb), rates);
});

test("workloads have an image, drives have files, snapshots have them once they are taken", () => {
  assert.deepEqual(storedOf(record("drive")), { drive: "u" });
  assert.deepEqual(storedOf(record("sandbox")), { image: "base:latest" });
  assert.equal(storedOf(record("sandbox", { spec: { runtime: { image: 5 } } })), null);
  assert.equal(storedOf(record("volume")), null);
  assert.equal(storedOf(record("snapshot")), null);
  assert.deepEqual(storedOf(record("snapshot", { state: { phase: "ready" } })), { snapshot: "n" });
});
