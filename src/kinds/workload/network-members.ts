/**
 * Finds misspelt members of `spec.network`. Elsewhere an unknown member is kept and has no effect; here it would leave
 * open what its author believes to be closed. A member that resembles none is kept, for clients that send more.
 */
import { nearestWord } from "../../lib/nearest-word.ts";
import { RuleProblem } from "../../lib/network/egress/rule-problem.ts";

interface Members {
  /** A member without members of its own is null. */
  readonly [name: string]: Members | null;
}

const DOMAIN_LISTS = { allowedDomains: null, forbiddenDomains: null };

const RULE = { action: null, domains: null, cidr: null, port: null, protocol: null, methods: null, path: null };

const ROUTE = { destinations: null, headers: null, body: null, secrets: null, redact: null };

const NETWORK: Members = {
  bandwidth: { sendMbps: null, receiveMbps: null },
  egress: null,
  subnet: null,
  firewall: { rulesets: null, rules: RULE },
  proxy: { routing: ROUTE, bypass: null, ...DOMAIN_LISTS },
  ...DOMAIN_LISTS,
};

/** Throws RuleProblem. */
export function requireKnownMembers(network: unknown, place: string): void {
  check(network, NETWORK, place);
}

function check(given: unknown, known: Members, place: string): void {
  if (typeof given !== "object" || given === null) return;
  if (Array.isArray(given)) {
    for (const [index, item] of given.entries()) check(item, known, `${place}[${index}]`);
    return;
  }
  for (const [name, value] of Object.entries(given)) {
    const path = `${place}.${name}`;
    const inner = Object.hasOwn(known, name) ? known[name] : undefined;
    if (inner) check(value, inner, path);
    if (inner !== undefined) continue;
    const meant = nearestWord(name, Object.keys(known));
    if (meant !== null) throw new RuleProblem(path, `is unknown; ${meant} is probably meant`);
  }
}
