import assert from "node:assert/strict";
import { test } from "node:test";
import { prepareNetwork, requireNetworkRules } from "./network.ts";

const prepare = (network: object): void => prepareNetwork({ metadata: { name: "box" }, spec: { network } });

test("a misspelt member of the outbound rules is refused by its place, since it would leave open what it means to close", () => {
  for (const [network, message] of [
    [
      { proxy: { allowedDomain: ["api.example.com"] } },
      /^spec\.network\.proxy\.allowedDomain: .*allowedDomains is probably meant/,
    ],
    [{ alowedDomains: ["api.example.com"] }, /^spec\.network\.alowedDomains: .*allowedDomains/],
    [{ prxy: { allowedDomains: ["api.example.com"] } }, /^spec\.network\.prxy: .*proxy/],
    [{ firewall: { rule: [{ action: "deny" }] } }, /^spec\.network\.firewall\.rule: .*rules/],
    [{ firewall: { rules: [{ action: "allow", domain: ["a.test"] }] } }, /rules\[0\]\.domain: .*domains/],
    [{ proxy: { routing: [{ destinations: ["a.test"], redacted: true }] } }, /routing\[0\]\.redacted: .*redact/],
  ] as const)
    assert.throws(() => prepare(network), { message });
  assert.throws(
    () => requireNetworkRules({ proxy: { forbidenDomains: [] } } as object),
    /forbiddenDomains is probably meant/,
  );
});

test("members that other clients send, and those that resemble none, are kept", () => {
  prepare({ egress: { mode: "dedicated", gateway: "gw" }, subnet: "a", comment: "x" });
  prepare({ proxy: { routing: [{ destinations: ["a.test"], headers: { Redacts: "x" }, secrets: { bodi: "x" } }] } });
});
