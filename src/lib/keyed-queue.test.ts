import assert from "node:assert/strict";
import { test } from "node:test";
import { KeyedQueue } from "./keyed-queue.ts";

test("a key runs alone, and once more when it was added meanwhile", async () => {
  const log: string[] = [];
  const gates: (() => void)[] = [];
  const queue = new KeyedQueue({
    concurrency: 4,
    onError: (_key, error) => assert.fail(String(error)),
    work: async (key) => {
      log.push(key);
      await new Promise<void>((resolve) => gates.push(resolve));
      return undefined;
    },
  });
  queue.add("a");
  queue.add("a");
  queue.add("a");
  queue.add("b");
  assert.deepEqual(log, ["a", "b"]);
  queue.add("a");
  gates[0]?.();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(log, ["a", "b", "a"]);
  const stopped = queue.stop();
  for (const open of gates) open();
  await stopped;
  assert.deepEqual(log, ["a", "b", "a"]);
});

test("a failed key is tried again", async () => {
  let tries = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const queue = new KeyedQueue({
    concurrency: 1,
    onError: () => {},
    work: async () => {
      tries += 1;
      if (tries < 3) throw new Error("not yet");
      resolve();
      return undefined;
    },
  });
  queue.add("x");
  const keepAlive = setInterval(() => {}, 1000);
  await promise;
  clearInterval(keepAlive);
  await queue.stop();
  assert.equal(tries, 3);
});

test("work that settles a key is not begun anew for what it added itself, but for what somebody else added", async () => {
  for (const [additions, runs] of [
    [1, 1],
    [2, 2],
  ]) {
    let ran = 0;
    const queue: KeyedQueue = new KeyedQueue({
      concurrency: 1,
      onError: () => {},
      work: async (key) => {
        ran += 1;
        if (ran > 1) return undefined;
        for (let n = 0; n < Number(additions); n += 1) queue.add(key);
        return { againMs: 60_000, ownAdditions: 1 };
      },
    });
    queue.add("x");
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(ran, runs);
    await queue.stop();
  }
});
