import assert from "node:assert/strict";
import { test } from "node:test";
import { type Root, roomsOf, rootOf } from "./rooms.ts";

const root = (usedBytes: number, freeBytes: number, pendingBytes = 0): Root => ({ usedBytes, freeBytes, pendingBytes });
const GUARANTEED = 100;

for (const [name, roots, available, rooms] of [
  ["there is enough for all", [root(0, 10), root(5, 300)], 400, [10, 300]],
  ["everybody is guaranteed the same, and shares the rest", [root(0, 900), root(0, 900)], 300, [150, 150]],
  ["whoever has much has no part in what is guaranteed", [root(500, 900), root(20, 900)], 80, [0, 80]],
  ["who can take little leaves it to others", [root(0, 900), root(0, 10)], 110, [100, 10]],
  ["less than is guaranteed is shared alike", [root(0, 900), root(0, 900)], 100, [50, 50]],
  ["what is on its way to the disk is taken", [root(20, 900, 20), root(10, 900, 10)], 90, [25, 35]],
  ["nothing is left", [root(0, 100, 50), root(0, 5)], 40, [0, 0]],
  ["the disk is fuller than the server wants", [root(0, 100)], -5, [0]],
  ["no roots", [], 40, []],
] as [string, Root[], number, number[]][])
  test(`rooms: ${name}`, () => assert.deepEqual(roomsOf(roots, available, GUARANTEED).map(Math.round), rooms));

test("rooms: whoever writes without end leaves others what they are guaranteed", () => {
  const [greedy, other] = [root(0, 10_000), root(10, 10_000)];
  let available = 600;
  for (let look = 0; look < 50; look++) {
    const [room = 0] = roomsOf([greedy, other], available, GUARANTEED);
    greedy.usedBytes += room;
    greedy.freeBytes -= room;
    available -= room;
    const rooms = roomsOf([greedy, other], available, GUARANTEED);
    assert.ok(rooms.reduce((sum, each) => sum + each, 0) <= available, "together never more than there is");
    assert.ok((rooms[1] ?? 0) >= 89, `look ${look}: ${rooms[1]}`);
  }
});

test("rooms: a workload whose first process has another root is bounded by its size and its file", () => {
  const [overlay, tmpfs] = [0x794c7630, 0x01021994];
  const told = { type: overlay, blocks: 1000, bfree: 400, bsize: 4096 };
  assert.deepEqual(rootOf(told, 4_200_000, 2_400_000), root(2_457_600, 1_638_400, 57_600));
  const bounded = root(2_400_000, 1_800_000);
  assert.deepEqual(rootOf({ ...told, type: tmpfs, bfree: 0 }, 4_200_000, 2_400_000), bounded);
  assert.deepEqual(rootOf(null, 4_200_000, 2_400_000), bounded);
});
