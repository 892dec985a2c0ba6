import assert from "node:assert/strict";
import { test } from "node:test";
import { isLoopbackName, siteOf } from "./site.ts";

test("hosts below one registered name are one site", () => {
  assert.equal(siteOf("console.example.com"), siteOf("a.b.example.com"));
  assert.notEqual(siteOf("example.com"), siteOf("example.org"));
  assert.equal(siteOf("console.firm.co.uk"), "firm.co.uk");
  assert.notEqual(siteOf("console.localhost"), siteOf("x.preview.localhost"));
  assert.notEqual(siteOf("console.localhost"), siteOf("localhost"));
  assert.notEqual(siteOf("10.0.0.1"), siteOf("11.0.0.1"));
});

test("loopback has several names", () => {
  for (const host of ["localhost", "console.localhost", "127.0.0.1", "127.1.2.3", "[::1]"])
    assert.ok(isLoopbackName(host));
  for (const host of ["127.0.0.1.example.com", "localhost.example.com", "0.0.0.0"]) assert.ok(!isLoopbackName(host));
});
