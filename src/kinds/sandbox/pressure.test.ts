import assert from "node:assert/strict";
import { test } from "node:test";
import { type Candidate, chosen, shortageOf } from "./pressure.ts";

const GB = 2 ** 30;
const look = (availableBytes: number, stalledPercent = 0, swaps = false) => ({ availableBytes, stalledPercent, swaps });
const candidate = (uid: string, more: Partial<Candidate> = {}): Candidate => ({
  ...{ uid, state: "frozen", sinks: true, lastUsedMs: 0, memoryBytes: GB },
  ...more,
});
const uids = (found: Candidate[]): string[] => found.map(({ uid }) => uid);

test("memory is short below the floor, or while processes wait for it, and never with a floor of 0", () => {
  assert.equal(shortageOf(look(2 * GB), GB), null);
  assert.deepEqual(shortageOf(look(GB / 2), GB), { bytes: GB / 2, swaps: false });
  assert.deepEqual(shortageOf(look(2 * GB, 30, true), GB), { bytes: 1, swaps: true });
  assert.equal(shortageOf(look(0, 100), 0), null);
});

test("sleeping sandboxes go before those that are awake, then the least used, as many as make up for the shortage", () => {
  const all = [
    candidate("awake", { state: "running", lastUsedMs: 1 }),
    candidate("late", { lastUsedMs: 9 }),
    candidate("early", { lastUsedMs: 3 }),
  ];
  assert.deepEqual(uids(chosen(all, { bytes: 1, swaps: false }, 8)), ["early"]);
  assert.deepEqual(uids(chosen(all, { bytes: 1.5 * GB, swaps: false }, 8)), ["early", "late"]);
  assert.deepEqual(uids(chosen(all, { bytes: 9 * GB, swaps: false }, 8)), ["early", "late", "awake"]);
});

test("a sandbox that cannot go to disk is frozen only where the machine has swap", () => {
  const other = { sinks: false };
  const all = [candidate("frozen", other), candidate("running", { ...other, state: "running" })];
  assert.deepEqual(uids(chosen(all, { bytes: GB, swaps: false })), []);
  assert.deepEqual(uids(chosen(all, { bytes: GB, swaps: true })), ["running"]);
});

test("one look chooses as many as may be on their way at a time", () => {
  const all = Array.from({ length: 30 }, (_, index) => candidate(String(index), { lastUsedMs: index }));
  assert.equal(chosen(all, { bytes: 100 * GB, swaps: false }, 8).length, 8);
  assert.deepEqual(chosen(all, { bytes: 100 * GB, swaps: false }, 0), []);
});
