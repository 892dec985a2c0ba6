/** Checks `spec.network` when a workload or a network policy is written, and compiles it when a workload runs. */
import { invalidField } from "../../contract/errors.ts";
import { lowestBandwidth } from "../../lib/network/egress/bandwidth.ts";
import { type NetworkRules, outboundPolicy, type PlacedRules } from "../../lib/network/egress/outbound-policy.ts";
import { type RoutingSpec, routesOf } from "../../lib/network/egress/routes.ts";
import { RuleProblem } from "../../lib/network/egress/rule-problem.ts";
import type { SourceAddresses } from "../../lib/network/egress/source-addresses.ts";
import type { WorkloadRules } from "../../lib/network/egress/workload-rules.ts";
import type { WorkloadVpc } from "../../lib/network/egress/workload-vpc.ts";
import type { Input } from "../port.ts";
import { requireKnownMembers } from "./network-members.ts";
import { workloadSpec } from "./spec.ts";

export type NetworkSpec = NetworkRules & { proxy?: RoutingSpec | undefined };

const PLACE = "spec.network";

export const networkOf = (spec: Record<string, unknown>): NetworkSpec => workloadSpec(spec).network ?? {};

/** Throws RuleProblem. The rules of the workspace come first: their refusals are the ones to name. */
export function compileNetwork(
  own: NetworkSpec,
  workspace: readonly PlacedRules[] = [],
  sources: SourceAddresses | null = null,
  vpc: WorkloadVpc | null = null,
): WorkloadRules {
  return {
    policy: outboundPolicy([...workspace, { place: PLACE, rules: own }]),
    routes: routesOf(own.proxy ?? {}, `${PLACE}.proxy`),
    sources,
    bandwidth: lowestBandwidth([own.bandwidth]),
    owner: null,
    vpc,
  };
}

/** Refuses rules that cannot be understood, with the member that holds them. An empty network is no network. */
export function prepareNetwork({ spec }: Input): void {
  if (spec.network && Object.keys(spec.network).length === 0) delete spec.network;
  if (spec.network === undefined) return;
  understood(() => {
    requireKnownMembers(networkOf(spec), PLACE);
    compileNetwork(networkOf(spec));
  });
}

/** The same for a policy of type network. */
export const requireNetworkRules = (rules: NetworkRules): void =>
  understood(() => {
    requireKnownMembers(rules, PLACE);
    outboundPolicy([{ place: PLACE, rules }]);
  });

function understood(compile: () => unknown): void {
  try {
    compile();
  } catch (error) {
    throw error instanceof RuleProblem ? invalidField(error.path, error.rule) : error;
  }
}
