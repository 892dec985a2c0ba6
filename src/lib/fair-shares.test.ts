import assert from "node:assert/strict";
import { test } from "node:test";
import { FairShares } from "./fair-shares.ts";

const enter = (shares: FairShares, member: string, times: number): (string | null)[] =>
  Array.from({ length: times }, () => shares.enter(member));

test("a member alone gets every place, and no more", () => {
  const shares = new FairShares(8);
  assert.deepEqual(enter(shares, "one", 9), [...Array(8).fill(null), "full"]);
});

test("a member that holds most places gets none of the last quarter once somebody else came", () => {
  const shares = new FairShares(8);
  enter(shares, "greedy", 6);
  assert.equal(shares.enter("small"), null);
  assert.equal(shares.enter("greedy"), "share");
  assert.equal(shares.enter("small"), null);
  assert.equal(shares.enter("third"), "full");
  for (let at = 0; at < 4; at += 1) shares.leave("greedy");
  assert.equal(shares.enter("third"), null);
});

test("a member has its own limit, and leaving gives the place back once", () => {
  const shares = new FairShares(8, 2);
  assert.deepEqual(enter(shares, "one", 3), [null, null, "member"]);
  shares.leave("one");
  assert.equal(shares.enter("one"), null);
  shares.leave("one");
  shares.leave("one");
  shares.leave("one");
  assert.equal(shares.total, 0);
});
