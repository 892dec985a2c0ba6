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

test("one owner does not take all places", async () => {
  const queue = new FairQueue({ atOnce: 3, atOncePerOwner: 1, waitingMax: 2 });
  const gate = Promise.withResolvers<void>();
  const begun: string[] = [];
  const piece = (owner: string) =>
    queue.run(owner, async () => {
      begun.push(owner);
      await gate.promise;
    });
  const pieces = [piece("a"), piece("a"), piece("a")];
  assert.deepEqual([piece("a"), queue.hasRoom("a"), queue.hasRoom("b")], [null, false, true]);
  await queue.run("b", async () => begun.push("b"));
  assert.deepEqual(begun, ["a", "b"]);
  gate.resolve();
  await Promise.all(pieces);
  assert.deepEqual(begun, ["a", "b", "a", "a"]);
});

test("a piece that fails makes room", async () => {
  const queue = new FairQueue({ atOnce: 1, waitingMax: 1 });
  await assert.rejects(queue.run("a", () => Promise.reject(new Error("no"))) ?? Promise.resolve());
  assert.equal(await queue.run("a", async () => 1), 1);
});
