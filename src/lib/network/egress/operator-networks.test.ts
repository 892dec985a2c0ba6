import assert from "node:assert/strict";
import { test } from "node:test";
import { isOffered, parseOperatorNetwork, parseRoute } from "./operator-networks.ts";

test("the packet filter gets the range that was judged, however its prefix was written", () => {
  const offered = [parseOperatorNetwork("team=10.20.0.0/16", "vpc_networks")];
  // nft reads a number that begins with a zero as octal: 016 is 14, which holds 10.23.0.0 too.
  const route = parseRoute("10.20.0.0/016", "spec.routes[0]");
  assert.ok(isOffered(offered, "team", route));
  assert.equal(route.cidr, "10.20.0.0/16");
  assert.equal(parseRoute("10.20.0.1", "spec.routes[0]").cidr, "10.20.0.1/32");
  assert.equal(parseRoute("fd00:20::/032", "spec.routes[0]").cidr, "fd00:20::/32");
});
