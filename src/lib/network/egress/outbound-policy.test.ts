import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { parseAddress } from "../address-class.ts";
import { parseHost } from "./host.ts";
import { plainRequestPath } from "./http-target.ts";
import { type NetworkRules, type OutboundPolicy, outboundPolicy } from "./outbound-policy.ts";

const policy = (...layers: NetworkRules[]): OutboundPolicy =>
  outboundPolicy(layers.map((rules, index) => ({ place: index === 0 ? "spec.network" : `policy ${index}`, rules })));

interface Asked {
  host: string;
  address?: string;
  port?: number;
  udp?: true;
  http?: [method: string, path: string];
}

/** "allowed", the place of the rule that refuses, or "malformed" for a text that is no host. */
function judged(rules: OutboundPolicy, { host: text, address, port = 443, udp, http }: Asked): string {
  const host = parseHost(text);
  if (!host) return "malformed";
  const named = rules.judgeName(host);
  if (!named.allowed) return named.rule;
  const verdict = rules.judge({
    host,
    port,
    transport: udp ? "udp" : "tcp",
    ...(address ? { address: parseAddress(address) ?? undefined } : {}),
    ...(http ? { http: { method: http[0], path: http[1] } } : {}),
  });
  return verdict.allowed ? "allowed" : verdict.rule;
}

const ALLOW = "spec.network.proxy.allowedDomains";
const allowTwo = policy({ proxy: { allowedDomains: ["example.com", "*.münchen.de", "203.0.113.7", "2001:DB8::1"] } });
const denySome = policy({ proxy: { forbiddenDomains: ["evil.test", "*.ads.test", "198.51.100.9"] } });
const both = policy({ proxy: { allowedDomains: ["good.ads.test"], forbiddenDomains: ["*.ads.test"] } });
const ranges = policy({
  firewall: {
    rules: [
      { action: "allow", cidr: "203.0.113.128/25", port: "8000-8999" },
      { action: "deny", cidr: "203.0.113.0/24" },
      { action: "deny", protocol: "udp" },
      { action: "deny", cidr: "2001:db8::/32" },
      { action: "deny", domains: ["api.test"], methods: ["DELETE"], path: "/v1/*" },
    ],
  },
});
const old = policy({ allowedDomains: ["old.test"], forbiddenDomains: ["*"] });
const layered = policy({ proxy: { allowedDomains: ["*"] } }, { proxy: { allowedDomains: ["office.test"] } });

const TABLE: readonly [why: string, rules: OutboundPolicy, asked: Asked, verdict: string][] = [
  ["a listed name", allowTwo, { host: "example.com" }, "allowed"],
  ["its other spellings", allowTwo, { host: "EXAMPLE.Com." }, "allowed"],
  ["full-width letters are the same name", allowTwo, { host: "ｅxample.com" }, "allowed"],
  ["an escape is the same name", allowTwo, { host: "%65xample.com" }, "allowed"],
  ["an ideographic dot is a dot", allowTwo, { host: "example。com" }, "allowed"],
  ["a homograph is another name", allowTwo, { host: "exаmple.com" }, ALLOW],
  ["two final dots are no name", allowTwo, { host: "example.com.." }, "malformed"],
  ["an empty label is no name", allowTwo, { host: "www..example.com" }, "malformed"],
  ["a name below a listed one is not listed", allowTwo, { host: "www.example.com" }, ALLOW],
  ["a name that ends alike is not listed", allowTwo, { host: "notexample.com" }, ALLOW],
  ["a listed name as a label", allowTwo, { host: "example.com.evil.test" }, ALLOW],
  ["below a wildcard, in punycode", allowTwo, { host: "www.xn--mnchen-3ya.de" }, "allowed"],
  ["below a wildcard, in Unicode and deep", allowTwo, { host: "a.b.MÜNCHEN.de" }, "allowed"],
  ["the parent of a wildcard", allowTwo, { host: "münchen.de" }, ALLOW],
  ["a listed address", allowTwo, { host: "203.0.113.7" }, "allowed"],
  ["a listed address as a number", allowTwo, { host: "3405803783" }, "allowed"],
  ["a listed address in hexadecimal", allowTwo, { host: "0xcb.0.0x7107" }, "allowed"],
  ["a listed address within IPv6", allowTwo, { host: "[::ffff:203.0.113.7]" }, "allowed"],
  ["a listed IPv6 address", allowTwo, { host: "[2001:db8:0::0:1]" }, "allowed"],
  ["an address with a zone is no host", allowTwo, { host: "[2001:db8::1%eth0]" }, "malformed"],
  ["another address", allowTwo, { host: "203.0.113.8" }, ALLOW],
  ["another address in octal", allowTwo, { host: "0313.0.0161.010" }, ALLOW],
  ["a host with credentials is no host", allowTwo, { host: "example.com@evil.test" }, "malformed"],
  ["a host with a port is no host", allowTwo, { host: "evil.test:80" }, "malformed"],
  ["a host with a path is no host", allowTwo, { host: "evil.test/example.com" }, "malformed"],
  ["a host with a backslash is no host", allowTwo, { host: "evil.test\\example.com" }, "malformed"],

  ["a name in no list", denySome, { host: "example.com" }, "allowed"],
  ["a forbidden name", denySome, { host: "Evil.test." }, "spec.network.proxy.forbiddenDomains[0]"],
  ["below a forbidden name", denySome, { host: "www.evil.test" }, "allowed"],
  ["a forbidden wildcard", denySome, { host: "x.y.ads.test" }, "spec.network.proxy.forbiddenDomains[1]"],
  ["a forbidden address", denySome, { host: "198.51.100.9" }, "spec.network.proxy.forbiddenDomains[2]"],
  ["the same within IPv6", denySome, { host: "[::ffff:c633:6409]" }, "spec.network.proxy.forbiddenDomains[2]"],
  [
    "a name that leads to a forbidden address",
    denySome,
    { host: "cover.test", address: "198.51.100.9" },
    "spec.network.proxy.forbiddenDomains[2]",
  ],

  ["a host in both lists is allowed", both, { host: "good.ads.test" }, "allowed"],
  ["a host in the deny-list", both, { host: "bad.ads.test" }, "spec.network.proxy.forbiddenDomains[0]"],
  ["a host in neither", both, { host: "else.test" }, ALLOW],

  ["the first rule decides", ranges, { host: "203.0.113.200", port: 8080 }, "allowed"],
  ["outside its ports", ranges, { host: "203.0.113.200", port: 9000 }, "spec.network.firewall.rules[1]"],
  [
    "a name is judged by its address",
    ranges,
    { host: "x.test", address: "203.0.113.1" },
    "spec.network.firewall.rules[1]",
  ],
  ["by the bytes of the address", ranges, { host: "[::ffff:203.0.113.1]" }, "spec.network.firewall.rules[1]"],
  ["an IPv6 range", ranges, { host: "[2001:db8:ffff::]" }, "spec.network.firewall.rules[3]"],
  ["just beyond an IPv6 range", ranges, { host: "[2001:db9::]" }, "allowed"],
  ["a protocol", ranges, { host: "example.com", address: "192.0.2.1", udp: true }, "spec.network.firewall.rules[2]"],
  ["a method and a path", ranges, { host: "api.test", http: ["DELETE", "/v1/x"] }, "spec.network.firewall.rules[4]"],
  [
    "a path in disguise",
    ranges,
    { host: "api.test", http: ["DELETE", "/v2/%2e%2e//v1/x?q"] },
    "spec.network.firewall.rules[4]",
  ],
  [
    "a path in disguise behind an escape that is no text",
    ranges,
    { host: "api.test", http: ["DELETE", "/%761/%ff/../x"] },
    "spec.network.firewall.rules[4]",
  ],
  [
    "dots with a parameter",
    ranges,
    { host: "api.test", http: ["DELETE", "/v2/..;x/v1/x"] },
    "spec.network.firewall.rules[4]",
  ],
  ["another method", ranges, { host: "api.test", http: ["GET", "/v1/x"] }, "allowed"],
  ["another path", ranges, { host: "api.test", http: ["DELETE", "/v2"] }, "allowed"],
  ["a tunnel, whose requests cannot be read", ranges, { host: "api.test" }, "allowed"],

  ["the deprecated allow-list", old, { host: "old.test" }, "allowed"],
  ["the deprecated deny-list", old, { host: "new.test" }, "spec.network.forbiddenDomains[0]"],

  ["every layer must allow", layered, { host: "office.test" }, "allowed"],
  ["a workload cannot loosen its workspace", layered, { host: "home.test" }, "policy 1.proxy.allowedDomains"],
];

describe("the verdict on a destination", () => {
  for (const [why, rules, asked, verdict] of TABLE)
    test(`${why}: ${JSON.stringify(asked)}`, () => assert.equal(judged(rules, asked), verdict));
});

describe("rules that cannot be understood are refused with their place", () => {
  const MALFORMED: readonly (readonly [rules: NetworkRules, path: string])[] = [
    [{ proxy: { allowedDomains: ["ok.test", "https://x.test"] } }, "proxy.allowedDomains[1]"],
    [{ proxy: { forbiddenDomains: ["a.*.test"] } }, "proxy.forbiddenDomains[0]"],
    [{ proxy: { forbiddenDomains: ["*."] } }, "proxy.forbiddenDomains[0]"],
    [{ proxy: { forbiddenDomains: ["*.10.0.0.1"] } }, "proxy.forbiddenDomains[0]"],
    [{ proxy: { forbiddenDomains: ["x.test:443"] } }, "proxy.forbiddenDomains[0]"],
    [{ proxy: { forbiddenDomains: [`${"a".repeat(64)}.test`] } }, "proxy.forbiddenDomains[0]"],
    [{ allowedDomains: [""] }, "allowedDomains[0]"],
    [{ firewall: { rulesets: ["default", "open"] } }, "firewall.rulesets[1]"],
    ...["10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/", "10.0.0.0/8/8", "::ffff:10.0.0.0/104", "example.com", "10.0.0/8"].map(
      (cidr) => [{ firewall: { rules: [{ action: "deny" as const, cidr }] } }, "firewall.rules[0].cidr"] as const,
    ),
    ...[0, 65_536, "80-", "90-80", "http"].map(
      (port) => [{ firewall: { rules: [{ action: "deny" as const, port }] } }, "firewall.rules[0].port"] as const,
    ),
    [{ firewall: { rules: [{ action: "deny", methods: ["get"] }] } }, "firewall.rules[0].methods[0]"],
    [{ firewall: { rules: [{ action: "deny", path: "v1" }] } }, "firewall.rules[0].path"],
    [{ firewall: { rules: [{ action: "deny", path: "/*/x" }] } }, "firewall.rules[0].path"],
    [{ firewall: { rules: [{ action: "deny", path: "/x", protocol: "udp" }] } }, "firewall.rules[0].protocol"],
  ];
  for (const [rules, path] of MALFORMED)
    test(JSON.stringify(rules).slice(0, 80), () => {
      assert.throws(() => policy(rules), { path: `spec.network.${path}` });
    });
});

const label = fc.stringMatching(/^[a-z]([a-z0-9-]{0,8}[a-z0-9])?$/);
const name = fc.array(label, { minLength: 2, maxLength: 6 }).map((labels) => labels.join("."));
const noise = fc.infiniteStream(fc.boolean());

describe("for every name", () => {
  test("a wildcard holds exactly the names below its parent", () => {
    fc.assert(
      fc.property(name, name, (parent, other) => {
        const rules = policy({ proxy: { allowedDomains: [`*.${parent}`] } });
        assert.equal(judged(rules, { host: `x.${parent}` }), "allowed");
        assert.equal(judged(rules, { host: parent }), ALLOW);
        assert.equal(judged(rules, { host: other }), other.endsWith(`.${parent}`) ? "allowed" : ALLOW);
      }),
    );
  });

  test("case and a final dot change nothing", () => {
    fc.assert(
      fc.property(name, noise, fc.boolean(), (host, capital, dot) => {
        const spelled = [...host].map((letter) => (capital.next().value ? letter.toUpperCase() : letter)).join("");
        assert.equal(
          judged(policy({ proxy: { allowedDomains: [host] } }), { host: dot ? `${spelled}.` : spelled }),
          "allowed",
        );
      }),
    );
  });

  test("whatever is asked for, an allow-list of one name lets only that name pass", () => {
    const rules = policy({ proxy: { allowedDomains: ["only.test"] } });
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.webAuthority(), fc.ipV4Extended(), fc.ipV6()), (host) => {
        if (judged(rules, { host }) === "allowed") assert.equal(parseHost(host)?.text, "only.test");
      }),
    );
  });

  test("an address is in a range by its leading bits, also where ranges overlap", () => {
    fc.assert(
      fc.property(fc.nat(0xffffffff), fc.nat(0xffffffff), fc.integer({ min: 1, max: 32 }), (one, two, prefix) => {
        const text = (value: number): string => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join(".");
        const network = (one & (0xffffffff << (32 - prefix))) >>> 0;
        const rules = policy({
          firewall: {
            rules: [
              { action: "deny", cidr: `${text(network)}/${prefix}` },
              { action: "allow", cidr: "0.0.0.0/0" },
            ],
          },
        });
        const same = one >>> (32 - prefix) === two >>> (32 - prefix);
        assert.equal(judged(rules, { host: text(two) }), same ? "spec.network.firewall.rules[0]" : "allowed");
      }),
    );
  });

  test("a path is the same after it was made plain", () => {
    fc.assert(
      fc.property(fc.webPath(), (path) => {
        const plain = plainRequestPath(path);
        assert.match(plain, /^\//);
        assert.doesNotMatch(plain, /\/\/|\/\.\.?(\/|$)/);
      }),
    );
  });
});

test("ten thousand domains are looked up in as many steps as the name has labels", () => {
  const allowedDomains = Array.from({ length: 10_000 }, (_, index) => `*.host-${index}.test`);
  const rules = policy({ proxy: { allowedDomains } });
  const host = parseHost(`${"a.".repeat(20)}host-9999.test`);
  assert.ok(host);
  const steps = { count: 0 };
  const { get } = Map.prototype;
  Map.prototype.get = function (this: Map<unknown, unknown>, key: unknown) {
    steps.count += 1;
    return get.call(this, key);
  };
  try {
    assert.equal(rules.judgeName(host).allowed, true);
  } finally {
    Map.prototype.get = get;
  }
  assert.ok(steps.count <= 23, `${steps.count} look-ups`);
});
