import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseAddress } from "../address-class.ts";
import { type Destination, firewallRule, type RuleSpec } from "./firewall-rule.ts";
import { parseHost } from "./host.ts";
import { RuleIndex } from "./rule-index.ts";

const NAMES = ["a.test", "b.a.test", "c.b.a.test", "test", "other.test", "203.0.113.7", "2001:db8::7"];
const PATTERNS = [...NAMES, "*.test", "*.a.test", "*.b.a.test", "*"];
const RANGES = ["203.0.113.0/24", "203.0.113.7/32", "203.0.113.0/29", "0.0.0.0/0", "2001:db8::/32", "::/0"];
const ADDRESSES = ["203.0.113.7", "203.0.113.200", "198.51.100.1", "2001:db8::7", "2606:4700::1"];

const rule = fc.record(
  {
    action: fc.constantFrom("allow" as const, "deny" as const),
    domains: fc.array(fc.constantFrom(...PATTERNS), { minLength: 1, maxLength: 3 }),
    cidr: fc.constantFrom(...RANGES),
    port: fc.constantFrom<number | string>(443, "8000-8999"),
    protocol: fc.constantFrom("tcp" as const, "udp" as const),
  },
  { requiredKeys: ["action"] },
);
const asked = fc.record({
  host: fc.constantFrom(...NAMES),
  address: fc.option(fc.constantFrom(...ADDRESSES), { nil: undefined }),
  port: fc.constantFrom(80, 443, 8080),
});

test("the index finds the rule that a look at every rule in turn finds", () => {
  fc.assert(
    fc.property(fc.array(rule, { maxLength: 12 }), asked, (specs, { host: text, address, port }) => {
      const rules = specs.map((spec: RuleSpec, index) => firewallRule(spec, `rules[${index}]`));
      const host = parseHost(text);
      assert.ok(host);
      const destination: Destination = {
        ...{ host, port, transport: "tcp" },
        address: address === undefined ? undefined : (parseAddress(address) ?? undefined),
      };
      const expected = rules.find((each) => each.matches(destination)) ?? null;
      assert.equal(new RuleIndex(rules).first(destination)?.place, expected?.place);
    }),
    { numRuns: 500 },
  );
});

test("of a thousand rules only those that are filed under the destination are asked", () => {
  let count = 0;
  const rules = Array.from({ length: 1000 }, (_, index) => {
    const made = firewallRule({ action: "deny", cidr: `198.51.${index >> 8}.${index & 255}` }, `rules[${index}]`);
    const matches = (destination: Destination): boolean => {
      count += 1;
      return made.matches(destination);
    };
    return { ...made, matches };
  });
  const host = parseHost("198.51.2.7");
  assert.ok(host);
  assert.equal(new RuleIndex(rules).first({ host, port: 443, transport: "tcp" })?.place, "rules[519]");
  assert.equal(count, 1);
});
