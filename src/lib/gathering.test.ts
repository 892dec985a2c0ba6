import assert from "node:assert/strict";
import { test } from "node:test";
import { Gathering } from "./gathering.ts";

test("what comes together is let go together, once, and what comes later later", async () => {
  const released: string[] = [];
  let done = Promise.withResolvers<void>();
  const release = (key: string): void => {
    released.push(key);
    done.resolve();
  };
  const gathering = new Gathering({ quietMs: 1, busyMaxMs: 1000, release });
  for (const key of ["a", "b", "a"]) gathering.add(key);
  assert.deepEqual(released, []);
  await done.promise;
  assert.deepEqual(released, ["a", "b"]);
  done = Promise.withResolvers();
  gathering.add("c");
  await done.promise;
  assert.deepEqual(released, ["a", "b", "c"]);
});

test("the first of a stream that never stops is let go all the same", async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const gathering = new Gathering({ quietMs: 60_000, busyMaxMs: 0, release: resolve });
  gathering.add("a");
  assert.equal(await promise, "a");
});

test("what is held back at the stop is forgotten", async () => {
  const stopped = new Gathering({ quietMs: 1, busyMaxMs: 1, release: () => assert.fail("let go") });
  stopped.add("a");
  stopped.stop();
  stopped.add("b");
  const { promise, resolve } = Promise.withResolvers<string>();
  const later = new Gathering({ quietMs: 2, busyMaxMs: 2, release: resolve });
  later.add("c");
  assert.equal(await promise, "c", "whose time comes after that of the others");
});
