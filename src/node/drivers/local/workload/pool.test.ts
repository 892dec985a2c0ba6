import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Pool } from "./pool.ts";

test("what is taken is made anew, also from a pool that is full", async () => {
  let made = 0;
  const discarded: number[] = [];
  const pool = new Pool<number>({
    size: 2,
    make: async () => made++,
    discard: async (entry) => void discarded.push(entry),
    onError: assert.ifError,
  });
  pool.want("a");
  await pool.filled();
  assert.equal(made, 2);
  // As a start does it: the key is in use, and one of it is wanted.
  pool.want("a");
  assert.equal(pool.take("a"), 0);
  await pool.filled();
  assert.equal(made, 3);
  await pool.drain();
  assert.deepEqual(discarded, [1, 2]);
});

test("a refill that fails is told, and the next taking tries again", async () => {
  const told: unknown[] = [];
  let broken = true;
  const pool = new Pool<string>({
    size: 1,
    make: async (key) => {
      if (broken) throw new Error("busy");
      return key;
    },
    discard: async () => {},
    onError: (error) => told.push(error),
  });
  pool.want("a");
  await pool.filled();
  assert.equal(told.length, 1);
  broken = false;
  assert.equal(pool.take("a"), undefined);
  await pool.filled();
  assert.equal(pool.take("a"), "a");
  await pool.drain();
});

test("a burst is served first, and creates that never pause do not starve the pool", async () => {
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  try {
    let made = 0;
    const pool = new Pool<number>({
      size: 3,
      make: async () => made++,
      discard: async () => {},
      onError: assert.ifError,
    });
    const pass = async (ms: number): Promise<void> => {
      mock.timers.tick(ms);
      await new Promise((resolve) => setImmediate(resolve));
    };
    pool.want("a");
    await pool.filled();
    for (let n = 0; n < 3; n += 1) pool.take("a");
    await pass(200);
    assert.equal(made, 3, "those who took are using the processor");
    await pass(100);
    assert.equal(made, 6);
    let hits = 0;
    for (let n = 0; n < 40; n += 1) {
      if (pool.take("a") !== undefined && n >= 20) hits += 1;
      await pass(100);
    }
    assert.equal(hits, 20, "after the first second every taking is made good at once");
    await pool.drain();
  } finally {
    mock.timers.reset();
  }
});
