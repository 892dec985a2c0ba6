import assert from "node:assert/strict";
import { test } from "node:test";
import { FairQueue } from "./fair-queue.ts";

test("owners take turns, and the pieces of one are bounded", async () => {
  const queue = new FairQueue({ atOnce: 1, waitingMax: 3 });
  const done: string[] = [];
  const gate = Promise.withResolvers<void>();
  const piece = (owner: string, name: string) =>
    queue.run(owner, async () => {
      await gate.promise;
      done.push(name);
    });
  const pieces = [piece("a", "a1"), piece("a", "a2"), piece("a", "a3"), piece("a", "a4"), piece("b", "b1")];
  assert.equal(piece("a", "a5"), null);
  gate.resolve();
  await Promise.all(pieces);
  assert.deepEqual(done, ["a1", "a2", "b1", "a3", "a4"]);
});

test("a piece that fails makes room", async () => {
  const queue = new FairQueue({ atOnce: 1, waitingMax: 1 });
  await assert.rejects(queue.run("a", () => Promise.reject(new Error("no"))) ?? Promise.resolve());
  assert.equal(await queue.run("a", async () => 1), 1);
});
