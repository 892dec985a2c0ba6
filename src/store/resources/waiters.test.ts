import assert from "node:assert/strict";
import { test } from "node:test";
import type { Change } from "../database/database.ts";
import { createWaiters } from "./waiters.ts";

test("each is woken by changes of its own resource, and all when news may have been lost", () => {
  const listeners = new Set<(change: Change) => void>();
  const waiters = createWaiters({
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  });
  const tell = (topic: string, key: string): void => {
    for (const listener of listeners) listener({ topic, key });
  };
  const woken: string[] = [];
  const leave = ["a", "b", "b"].map((uid, index) => waiters.add(uid, () => woken.push(`${uid}${index}`)));
  assert.equal(listeners.size, 1);
  tell("resource", "sandbox/b");
  tell("resource", "sandbox/c");
  tell("identity", "a");
  assert.deepEqual(woken.splice(0), ["b1", "b2"]);
  leave[1]?.();
  tell("resync", "");
  assert.deepEqual(woken.splice(0), ["a0", "b2"]);
  for (const go of leave) go();
  assert.equal(listeners.size, 0, "nobody listens for nobody");
});
