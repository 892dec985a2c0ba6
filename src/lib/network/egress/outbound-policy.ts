/**
 * The outbound policy of a workload: may it connect to a destination, and which rule says so. A policy has layers, one
 * for the workload's own `spec.network` and one for each network policy of its workspace. Every layer must allow.
 *
 * In a layer the lists of domains come first, then the rules in their order:
 *   1. A name in the allow-list passes; a name in the deny-list does not; with an allow-list no other name does. A name
 *      that is refused here is never resolved.
 *   2. The first rule of `firewall.rules` whose conditions hold decides.
 *   3. An address that was asked for as such (no name) passes when no rule decided, and the lists would let it pass.
 */
import type { BandwidthSpec } from "./bandwidth.ts";
import { type DomainSet, domainSet, type PlacedPattern } from "./domain-set.ts";
import { type Destination, firewallRule, type RuleSpec } from "./firewall-rule.ts";
import { addressText, type Host } from "./host.ts";
import { RuleIndex } from "./rule-index.ts";
import { RuleProblem } from "./rule-problem.ts";

/** The part of `spec.network` that restricts. */
export interface NetworkRules {
  /** Judged by nobody here: the ways out hold it. */
  bandwidth?: BandwidthSpec | undefined;
  firewall?: { rulesets?: readonly string[] | undefined; rules?: readonly RuleSpec[] | undefined } | undefined;
  proxy?: DomainLists | undefined;
  /** Deprecated places of the lists of `proxy`. */
  allowedDomains?: readonly string[] | undefined;
  forbiddenDomains?: readonly string[] | undefined;
}

interface DomainLists {
  allowedDomains?: readonly string[] | undefined;
  forbiddenDomains?: readonly string[] | undefined;
}

export type Verdict = { allowed: true } | Refused;

export interface Refused {
  allowed: false;
  /** The place of the rule, such as `spec.network.proxy.forbiddenDomains[3]`. */
  rule: string;
}

export interface OutboundPolicy {
  /** No rule restricts the workload. */
  readonly open: boolean;
  /** Only listed names pass, so a connection must show the name that it is for. */
  readonly listsNames: boolean;
  /** The rules ask that nothing leaves but through the proxy. */
  readonly proxyOnly: boolean;
  /** Before a name is resolved; `judge` has the last word. */
  judgeName(host: Host): Verdict;
  judge(destination: Destination): Verdict;
}

/** Rulesets that clients of this API name. */
export const RULESETS = ["default", "proxy", "dedicated-ip"] as const;

const ALLOWED: Verdict = { allowed: true };

interface Layer {
  allowed: DomainSet;
  allowList: string;
  forbidden: DomainSet;
  rules: RuleIndex;
  proxyOnly: boolean;
}

export interface PlacedRules {
  /** Where the rules stand, such as `spec.network`. */
  place: string;
  rules: NetworkRules;
}

/** Throws RuleProblem. */
export function outboundPolicy(sources: readonly PlacedRules[]): OutboundPolicy {
  return policyOf(sources.map(compile).filter((layer) => !isEmpty(layer)));
}

/** For rules that cannot be read: everything is refused. */
export const closedPolicy = (rule: string): OutboundPolicy => {
  const verdict: Verdict = { allowed: false, rule };
  return { open: false, listsNames: true, proxyOnly: true, judgeName: () => verdict, judge: () => verdict };
};

export const OPEN_POLICY: OutboundPolicy = policyOf([]);

function policyOf(layers: readonly Layer[]): OutboundPolicy {
  return {
    open: layers.length === 0,
    listsNames: layers.some(({ allowed }) => allowed.size > 0),
    proxyOnly: layers.some(({ proxyOnly }) => proxyOnly),
    judgeName: (host) => first(layers, (layer) => (host.address ? ALLOWED : byLists(layer, host))),
    judge: (destination) => first(layers, (layer) => judge(layer, destination)),
  };
}

function first(layers: readonly Layer[], look: (layer: Layer) => Verdict): Verdict {
  for (const layer of layers) {
    const verdict = look(layer);
    if (!verdict.allowed) return verdict;
  }
  return ALLOWED;
}

function judge(layer: Layer, destination: Destination): Verdict {
  const { host } = destination;
  const listed = byLists(layer, host);
  if (!host.address && !listed.allowed) return listed;
  const rule = layer.rules.first(destination);
  if (rule) return rule.action === "allow" ? ALLOWED : { allowed: false, rule: rule.place };
  return listed.allowed ? byAddress(layer, destination) : listed;
}

/** A name does not lead to an address that the deny-list names, unless the allow-list names the name. */
function byAddress({ allowed, forbidden }: Layer, { host, address }: Destination): Verdict {
  if (!address || forbidden.size === 0 || allowed.find(host) !== null) return ALLOWED;
  const rule = forbidden.findExact(addressText(address));
  return rule === null ? ALLOWED : { allowed: false, rule };
}

/** A host in both lists is allowed. */
function byLists({ allowed, forbidden, allowList }: Layer, host: Host): Verdict {
  if (allowed.find(host) !== null) return ALLOWED;
  const rule = forbidden.find(host) ?? (allowed.size > 0 ? allowList : null);
  return rule === null ? ALLOWED : { allowed: false, rule };
}

const isEmpty = ({ allowed, forbidden, rules, proxyOnly }: Layer): boolean =>
  allowed.size === 0 && forbidden.size === 0 && rules.size === 0 && !proxyOnly;

function compile({ place, rules }: PlacedRules): Layer {
  const { proxy, firewall } = rules;
  const placed = (list: keyof DomainLists): PlacedPattern[] => [
    ...(proxy?.[list] ?? []).map((pattern, index) => ({ pattern, path: `${place}.proxy.${list}[${index}]` })),
    ...(rules[list] ?? []).map((pattern, index) => ({ pattern, path: `${place}.${list}[${index}]` })),
  ];
  for (const [index, name] of (firewall?.rulesets ?? []).entries())
    if (!RULESETS.some((known) => known === name))
      throw new RuleProblem(
        `${place}.firewall.rulesets[${index}]`,
        `is not a ruleset; there are ${RULESETS.join(", ")}`,
      );
  return {
    allowed: domainSet(placed("allowedDomains")),
    allowList: proxy?.allowedDomains?.length ? `${place}.proxy.allowedDomains` : `${place}.allowedDomains`,
    forbidden: domainSet(placed("forbiddenDomains")),
    rules: new RuleIndex(
      (firewall?.rules ?? []).map((rule, index) => firewallRule(rule, `${place}.firewall.rules[${index}]`)),
    ),
    proxyOnly: firewall?.rulesets?.includes("proxy") ?? false,
  };
}
