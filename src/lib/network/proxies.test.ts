import assert from "node:assert/strict";
import { test } from "node:test";
import { clientAddress, numberOfProxies, proxiesAt } from "./proxies.ts";

test("a workload behind its door is no proxy of the operator, whatever it sends", () => {
  for (const peer of [undefined, ""]) assert.equal(clientAddress(peer, "6.6.6.6", numberOfProxies(1)), "workload");
});

test("as many entries are believed as there are proxies", () => {
  const forwarded = "6.6.6.6, 203.0.113.1,10.0.0.2";
  assert.deepEqual(
    [0, 1, 2, 3].map((proxies) => clientAddress("10.0.0.1", forwarded, numberOfProxies(proxies))),
    ["10.0.0.1", "10.0.0.2", "203.0.113.1", "6.6.6.6"],
  );
  assert.equal(clientAddress("10.0.0.1", undefined, numberOfProxies(1)), "10.0.0.1");
});

test("an entry is an address: its port is left out, and any other text is the peer's word for itself", () => {
  const read = (hop: string): string => clientAddress("10.0.0.1", hop, numberOfProxies(1));
  assert.deepEqual(["203.0.113.1:5000", "[2001:db8::1]:5000", "[2001:db8::1]", "2001:db8::1"].map(read), [
    "203.0.113.1",
    ...["2001:db8::1", "2001:db8::1", "2001:db8::1"],
  ]);
  for (const hop of ["", "unknown", "_hidden", "<script>", "6.6.6.6 ok", "for=6.6.6.6"])
    assert.equal(read(hop), "10.0.0.1", hop);
});

test("proxies that are named by address: nobody else is believed, and their entries are skipped from the end", () => {
  const proxies = proxiesAt(["10.0.0.0/8", "2001:db8:1::/48"]);
  const read = (peer: string, forwarded: string): string => clientAddress(peer, forwarded, proxies);
  assert.equal(read("203.0.113.9", "6.6.6.6"), "203.0.113.9", "a client that connects itself");
  assert.equal(read("::ffff:10.0.0.1", "6.6.6.6, 203.0.113.1"), "203.0.113.1");
  assert.equal(read("10.0.0.1", "6.6.6.6, 203.0.113.1, [2001:db8:1::2]:80, 10.9.9.9:1"), "203.0.113.1");
  assert.equal(read("10.0.0.1", "10.0.0.7, 10.0.0.8"), "10.0.0.7", "a client of the operator's own network");
  assert.equal(read("10.0.0.1", "203.0.113.1, unknown"), "10.0.0.1");
  assert.throws(() => proxiesAt(["10.0.0.1/8"]), /beyond its prefix/);
});
