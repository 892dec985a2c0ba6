import assert from "node:assert/strict";
import { test } from "node:test";
import { clientAddress } from "./client-address.ts";

test("a workload behind its door is no proxy of the operator, whatever it sends", () => {
  for (const peer of [undefined, ""]) assert.equal(clientAddress(peer, "6.6.6.6", 1), "workload");
});

test("as many entries are believed as there are proxies", () => {
  const forwarded = "6.6.6.6, 203.0.113.1,10.0.0.2";
  assert.deepEqual(
    [0, 1, 2, 3].map((proxies) => clientAddress("10.0.0.1", forwarded, proxies)),
    ["10.0.0.1", "10.0.0.2", "203.0.113.1", "6.6.6.6"],
  );
  assert.equal(clientAddress("10.0.0.1", undefined, 1), "10.0.0.1");
});

test("an entry is an address: its port is left out, and any other text is the peer's word for itself", () => {
  const read = (hop: string): string => clientAddress("10.0.0.1", hop, 1);
  assert.deepEqual(["203.0.113.1:5000", "[2001:db8::1]:5000", "[2001:db8::1]", "2001:db8::1"].map(read), [
    "203.0.113.1",
    ...["2001:db8::1", "2001:db8::1", "2001:db8::1"],
  ]);
  for (const hop of ["", "unknown", "_hidden", "<script>", "6.6.6.6 ok", "for=6.6.6.6"])
    assert.equal(read(hop), "10.0.0.1", hop);
});
