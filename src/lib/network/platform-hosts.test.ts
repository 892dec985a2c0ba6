import assert from "node:assert/strict";
import { test } from "node:test";
import { certificateNamesFor, isPlatformHost } from "./platform-hosts.ts";

const OWN = { domain: "apps.example.net", publicHost: "berth.example.com", consoleHost: "console.example.com" };

test("the platform's names are its hosts, its domain and all below the domain", () => {
  for (const host of ["berth.example.com", "console.example.com", "apps.example.net", "a.b.apps.example.net"])
    assert.ok(isPlatformHost(host, OWN), host);
  for (const host of ["example.com", "a.berth.example.com", "badapps.example.net", "*.example.com", "shop.test"])
    assert.ok(!isPlatformHost(host, OWN), host);
  assert.ok(isPlatformHost("*.apps.example.net", OWN));
});

test("no wildcard of a domain above the platform's names is shown for them", () => {
  assert.deepEqual(certificateNamesFor("berth.example.com", OWN), ["berth.example.com"]);
  assert.deepEqual(certificateNamesFor("apps.example.net", OWN), ["apps.example.net"]);
  assert.deepEqual(certificateNamesFor("x.apps.example.net", OWN), ["x.apps.example.net", "*.apps.example.net"]);
  assert.deepEqual(certificateNamesFor("shop.example.com", OWN), ["shop.example.com", "*.example.com"]);
});
