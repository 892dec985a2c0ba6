/** Finds outbound rules that are accepted, because clients send them, and have no effect. */
import type { NetworkRules } from "../../lib/network/egress/outbound-policy.ts";

/** One sentence for each such rule. `hasGateway`: undefined where the rules are not those of one workload. */
export function idleRules({ firewall }: NetworkRules, hasGateway?: boolean): string[] {
  const told: string[] = [];
  for (const [index, { action, protocol }] of (firewall?.rules ?? []).entries())
    if (action === "allow" && protocol === "udp")
      told.push(
        `spec.network.firewall.rules[${index}] is kept and has no effect: a workload with rules sends no UDP except questions for names, which the platform answers.`,
      );
  const ruleset = firewall?.rulesets?.indexOf("dedicated-ip") ?? -1;
  if (ruleset >= 0 && hasGateway === false)
    told.push(
      `spec.network.firewall.rulesets[${ruleset}] is kept and has no effect: the workload leaves from the server's own address until spec.network.egress.gateway names a gateway.`,
    );
  return told;
}
