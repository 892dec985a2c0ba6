import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultEdgeProcesses, edgeProcessesOf } from "./edge-settings.ts";

test("edge processes follow the cores of the machine unless their number is set", () => {
  assert.deepEqual([1, 2, 3, 4, 8, 64].map(defaultEdgeProcesses), [0, 0, 1, 2, 4, 4]);
  assert.equal(edgeProcessesOf({ edge_processes: 0 }), 0);
  assert.equal(edgeProcessesOf({ edge_processes: 7 }), 7);
});
