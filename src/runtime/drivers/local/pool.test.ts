import assert from "node:assert/strict";
import { test } from "node:test";
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
