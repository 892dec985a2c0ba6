import assert from "node:assert/strict";
import { test } from "node:test";
import { HELD_BYTES_MAX, HeldBytes } from "./held-bytes.ts";

test("a body that comes byte by byte counts with what its chunks cost", () => {
  const bodies = new HeldBytes();
  const hold = bodies.open({ uid: "w", workspace: null });
  let chunks = 0;
  while (hold.take(1)) chunks += 1;
  assert.ok(chunks < 200_000, `one workload has ${chunks} chunks in memory`);
  hold.release();
  assert.ok(bodies.open({ uid: "w", workspace: null }).take(2 ** 20));
});

test("the workloads of one workspace together leave room for other workspaces", () => {
  const bodies = new HeldBytes();
  const holds = Array.from({ length: 32 }, (_, n) => bodies.open({ uid: `w${n}`, workspace: "greedy" }));
  let held = 0;
  for (const hold of holds) while (hold.take(2 ** 20)) held += 2 ** 20;
  assert.ok(held <= HELD_BYTES_MAX.workspace, `${held} bytes`);
  const neighbour = bodies.open({ uid: "n", workspace: "other" });
  assert.ok(neighbour.take(2 ** 20));
  for (const hold of [...holds, neighbour]) hold.release();
  assert.ok(bodies.open({ uid: "w0", workspace: "greedy" }).take(2 ** 20), "what was released can be taken again");
});
