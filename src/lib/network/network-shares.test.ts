import assert from "node:assert/strict";
import { test } from "node:test";
import { NetworkShares } from "./network-shares.ts";

const MAX = 96;
const granted = (shares: NetworkShares, addresses: readonly string[]): number =>
  addresses.filter((address) => shares.enter(address) === null).length;
const many = (address: string, count: number): string[] => Array<string>(count).fill(address);
/** Each in a /64 of its own. */
const ofOneNetwork = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `2001:db8:1:${index.toString(16)}::1`);

test("a client with a /48 leaves others more than one place each, however many /64 networks it uses", () => {
  const shares = new NetworkShares(MAX);
  assert.equal(granted(shares, ofOneNetwork(MAX)), 72);
  assert.equal(granted(shares, many("203.0.113.7", 10)), 10);
  assert.equal(granted(shares, many("2001:db8:2::7", 10)), 10);
  assert.equal(granted(shares, ofOneNetwork(MAX)), 0);
  assert.equal(shares.enter("203.0.113.8"), null);
});

test("within a network that is shared, a neighbour gets a part of its share", () => {
  const shares = new NetworkShares(MAX);
  granted(shares, many("203.0.113.7", 72));
  granted(shares, many("2001:db8:1:1::1", 12));
  assert.equal(shares.enter("2001:db8:1:2::1"), null);
  assert.equal(granted(shares, many("2001:db8:1:1::1", 100)), 11, "until none is free");
});

test("places that are given back are free, and networks without any are forgotten", () => {
  const shares = new NetworkShares(MAX);
  const entered = ofOneNetwork(60);
  granted(shares, entered);
  for (const address of entered) shares.leave(address);
  assert.equal(shares.total, 0);
  granted(shares, many("203.0.113.7", 72));
  assert.equal(granted(shares, many("2001:db8:1:1::1", MAX)), 24, "those that left count no more");
});
