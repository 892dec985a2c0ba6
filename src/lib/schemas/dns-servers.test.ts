import assert from "node:assert/strict";
import { Resolver } from "node:dns";
import { test } from "node:test";
import { dnsServers, isDnsServer } from "./dns-servers.ts";

test("DNS servers are addresses that Node's resolver takes", () => {
  for (const text of ["192.0.2.1", "192.0.2.1:5353", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:5353"]) {
    assert.ok(isDnsServer(text), text);
    new Resolver().setServers([text]);
  }
  for (const text of ["nonsense", "dns.example.com", "192.0.2.1:0", "192.0.2.1:99999", "192.0.2.256", "[192.0.2.1]:53"])
    assert.equal(dnsServers.safeParse(text).success, false, text);
  assert.deepEqual(dnsServers.parse("192.0.2.1, 2001:db8::1"), ["192.0.2.1", "2001:db8::1"]);
});
