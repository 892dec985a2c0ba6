import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type FollowOptions, followStream } from "./follow.ts";

/** Begins a follower; resolves with the stream's first event. */
function follow(t: TestContext, reader: string, look: FollowOptions["look"]): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const stream = followStream({ reader, after: null, look, now: Date.now, toWire: () => ({ timestamp: "" }) });
  const end = (message: string): void => reject(new Error(message));
  const { stop } = stream.start({ send: ({ event }) => resolve(event), hasRoom: () => true, end });
  t.after(stop);
  return promise;
}

test("the looks of one caller's followers take turns, and other callers are told meanwhile", async (t) => {
  const released = Promise.withResolvers<void>();
  let [underWay, most] = [0, 0];
  const costly = async (): Promise<[]> => {
    most = Math.max(most, ++underWay);
    await released.promise;
    underWay -= 1;
    return [];
  };
  const attackers = Array.from({ length: 32 }, () => follow(t, "attacker", costly));
  assert.equal(await follow(t, "neighbour", async () => []), "ready");
  released.resolve();
  assert.deepEqual(new Set(await Promise.all(attackers)), new Set(["ready"]));
  assert.equal(most, 1);
});
