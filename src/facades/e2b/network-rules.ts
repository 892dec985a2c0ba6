/** E2B's lists of addresses that a sandbox may reach, as rules of the platform's firewall. Pure. */
import { isIP } from "node:net";
import { Refusal, unsupported } from "./refusal.ts";

const ALL = "0.0.0.0/0";
/** The platform has these under other names, or not at all; a client that sends one relies on it. */
const NOT_HERE = ["egressProxy", "rules", "maskRequestHost", "httpsPorts"];

interface Rule {
  action: "allow" | "deny";
  domains?: string[];
  cidr?: string;
}

/** What may be reached is looked at before what may not. Undefined: everything may. */
export function networkOf(
  network: Record<string, unknown> | undefined,
  internet: boolean | undefined,
): object | undefined {
  for (const name of NOT_HERE) if (network?.[name] !== undefined) throw unsupported(`\`network.${name}\``);
  if (network?.allowPublicTraffic === true)
    throw unsupported("`network.allowPublicTraffic: true` (a preview gives a port a public address)");
  const rules = [
    ...listOf(network, "allowOut").flatMap((host) => rulesFor("allow", host)),
    ...listOf(network, "denyOut").flatMap((host) => rulesFor("deny", host)),
    ...(internet === false ? rulesFor("deny", ALL) : []),
  ];
  return rules.length === 0 ? undefined : { firewall: { rules } };
}

function rulesFor(action: Rule["action"], host: string): Rule[] {
  if (host === ALL)
    return [
      { action, domains: ["*"] },
      { action, cidr: ALL },
      { action, cidr: "::/0" },
    ];
  const [address = ""] = host.split("/", 1);
  return [isIP(address) ? { action, cidr: host } : { action, domains: [host] }];
}

function listOf(network: Record<string, unknown> | undefined, name: string): string[] {
  const list = network?.[name] ?? [];
  if (Array.isArray(list) && list.every((entry): entry is string => typeof entry === "string")) return list;
  throw new Refusal(400, `network.${name} must be a list of texts.`);
}
