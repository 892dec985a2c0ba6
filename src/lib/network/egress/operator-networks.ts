/** Networks of the operator that VPCs may have routes to, and the routes that VPCs ask for. */
import { ROUTABLE } from "../address-class.ts";
import { type NetworkRange, parseRange, rangeHolds } from "./network-range.ts";
import { RuleProblem } from "./rule-problem.ts";
import type { VpcRoute } from "./workload-vpc.ts";

export interface OperatorNetwork extends NetworkRange {
  /** The one workspace whose VPCs may have routes there; null = every workspace. */
  workspace: string | null;
}

/** `10.20.0.0/16`, or `workspace=10.20.0.0/16`. Throws RuleProblem. */
export function parseOperatorNetwork(text: string, path: string): OperatorNetwork {
  const [, workspace = null, cidr = ""] = /^(?:([a-z0-9-]+)=)?(.*)$/s.exec(text) ?? [];
  return { workspace, ...parseRoute(cidr, path) };
}

/** Throws RuleProblem for a text that is no range, and for a range that no route may lead to. */
export function parseRoute(cidr: string, path: string): VpcRoute {
  const range = parseRange(cidr, path);
  if (!isRoutableRange(range))
    throw new RuleProblem(path, `'${cidr}' is a range that no workload reaches, such as loopback or link-local`);
  const [address = ""] = cidr.split("/");
  return { ...range, cidr: `${address}/${range.prefix}` };
}

/** Whether the operator lets VPCs of the workspace have the route. */
export const isOffered = (networks: readonly OperatorNetwork[], workspace: string, route: NetworkRange): boolean =>
  networks.some((network) => (network.workspace ?? workspace) === workspace && covers(network, route));

const covers = (outer: NetworkRange, inner: NetworkRange): boolean =>
  outer.prefix <= inner.prefix && rangeHolds(outer, inner.bytes);

const ranges = (cidrs: readonly string[]): NetworkRange[] => cidrs.map((cidr) => parseRange(cidr, ""));
const WITHIN_IPV6 = ranges(ROUTABLE.ipv6Within);
const WITHOUT = ranges([...ROUTABLE.ipv4Without, ...ROUTABLE.ipv6Without]);

/** A range may hold addresses that no route leads to, but not only such. */
const isRoutableRange = (range: NetworkRange): boolean =>
  (range.bytes.length === 4 || WITHIN_IPV6.some((network) => covers(network, range))) &&
  !WITHOUT.some((network) => covers(network, range));
