import assert from "node:assert/strict";
import { test } from "node:test";
import { isTrustedHop } from "./trusted-hop.ts";

test("a workload behind its door is no proxy of the operator, whatever it sends", () => {
  for (const address of [undefined, ""]) assert.equal(isTrustedHop(address, 0, 1), false);
});

test("as many hops are trusted as there are proxies", () => {
  assert.deepEqual(
    [0, 1, 2].map((hop) => isTrustedHop("10.0.0.1", hop, 2)),
    [true, true, false],
  );
  assert.equal(isTrustedHop("10.0.0.1", 0, 0), false);
});
