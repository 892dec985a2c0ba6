import assert from "node:assert/strict";
import { test } from "node:test";
import { HeldBytes } from "./held-bytes.ts";

test("a body that comes byte by byte counts with what its chunks cost", () => {
  const bodies = new HeldBytes();
  const hold = bodies.open("w");
  let chunks = 0;
  while (hold.take(1)) chunks += 1;
  assert.ok(chunks < 200_000, `one workload has ${chunks} chunks in memory`);
  hold.release();
  assert.ok(bodies.open("w").take(2 ** 20));
});
