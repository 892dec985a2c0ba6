import assert from "node:assert/strict";
import { test } from "node:test";
import { isCanaryTurn } from "./trial.ts";

test("of any hundred turns in a row the canary has exactly its share", () => {
  for (let percent = 0; percent <= 100; percent += 1)
    for (const first of [0, 1, 37, 99, 1234]) {
      const turns = Array.from({ length: 100 }, (_, n) => isCanaryTurn(first + n, percent));
      assert.equal(turns.filter(Boolean).length, percent, `${percent} from ${first}`);
    }
});
