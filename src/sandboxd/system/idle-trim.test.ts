import assert from "node:assert/strict";
import { test } from "node:test";
import { IdleTrim } from "./idle-trim.ts";

test("memory is given back after a rest, and not to the owner's first request for what went before", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  let isOwned = false;
  let shrunk = 0;
  const trim = new IdleTrim(
    () => isOwned,
    () => (shrunk += 1),
  );
  trim.begin()(); // warmed up
  t.mock.timers.tick(2_900);
  isOwned = true;
  t.mock.timers.tick(1_000);
  assert.equal(shrunk, 0);
  const end = trim.begin();
  t.mock.timers.tick(10_000);
  assert.equal(shrunk, 0, "while it works");
  end();
  t.mock.timers.tick(2_900);
  trim.begin()();
  t.mock.timers.tick(2_900);
  assert.equal(shrunk, 0, "too soon after the last");
  t.mock.timers.tick(200);
  assert.equal(shrunk, 1);
});
