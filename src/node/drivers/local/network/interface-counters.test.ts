import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { InterfaceCounters } from "./interface-counters.ts";

const table = (bytes: number): string => `Inter-|   Receive                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    1       2    0    0    0     0          0         0     3       4    0    0    0     0       0          0
 b-v10:${bytes} 5 0 0 0 0 0 0 77 6 0 0 0 0 0 0
`;

test("a pass over many interfaces reads the table once, and the next pass sees new bytes", async () => {
  let reads = 0;
  const counters = new InterfaceCounters(() => {
    reads += 1;
    return table(reads * 100);
  });
  const pass = () => Promise.all(["lo", "b-v10", "b-v1"].map(async (name) => counters.of(name)));
  assert.deepEqual(await pass(), [
    { receivedBytes: 1, sentBytes: 3 },
    { receivedBytes: 100, sentBytes: 77 },
    { receivedBytes: 0, sentBytes: 0 },
  ]);
  assert.equal(reads, 1);
  await turn();
  assert.deepEqual((await pass())[1], { receivedBytes: 200, sentBytes: 77 });
  assert.equal(reads, 2);
});
