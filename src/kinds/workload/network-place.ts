/** The VPC and the egress gateway that a workload's spec names. */
import { invalidField } from "../../contract/errors.ts";
import { canonicalJson } from "../../lib/canonical-json.ts";
import { SOURCE_CHOICES, type SourceAddresses } from "../../lib/network/egress/source-addresses.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Store } from "../../store/store.ts";
import { egressGateway } from "../egress-gateway/kind.ts";
import { leavesFrom } from "../egress-ip/holdings.ts";
import { egressIp } from "../egress-ip/kind.ts";
import { lookUp } from "../place.ts";
import { type Input, type PrepareContext, workspaceOf } from "../port.ts";
import { vpc as vpcKind } from "../vpc/kind.ts";
import { vpcNameOf } from "../vpc/members.ts";
import { idleRules } from "./idle-rules.ts";
import { networkOf } from "./network.ts";
import { workloadSpec } from "./spec.ts";
import { warnWithoutNat } from "./without-nat.ts";

type Spec = Record<string, unknown>;

const DEDICATED = "dedicated";

const egressOf = (spec: Spec) => workloadSpec(spec).network?.egress ?? {};

/** The name of the gateway that a workload leaves by; undefined = the workload has none. */
export const gatewayOf = (spec: Spec): string | undefined => egressOf(spec).gateway || undefined;

/**
 * Requires that the named VPC and gateway exist, and warns about rules without an effect. Values that the workload already
 * has may be written back unchecked.
 */
export async function requireNetwork({ spec }: Input, context: PrepareContext): Promise<void> {
  const { call, current, deps } = context;
  const workspace = workspaceOf(call).name;
  const name = vpcNameOf(spec);
  const gateway = gatewayOf(spec);
  const { mode } = egressOf(spec);
  if (!current || canonicalJson([current.spec.network]) !== canonicalJson([spec.network]))
    for (const text of idleRules(networkOf(spec), gateway !== undefined)) call.warn(text);
  if (mode !== undefined && mode !== DEDICATED)
    call.warn(`spec.network.egress.mode is kept and has no effect: the only mode is ${DEDICATED}.`);
  if (mode === DEDICATED && gateway === undefined && (!current || egressOf(current.spec).mode !== mode))
    throw invalidField("spec.network.egress.gateway", `must name an egress gateway of the VPC '${name}'`);
  if (current && name === vpcNameOf(current.spec) && gateway === gatewayOf(current.spec)) return;
  if (name === vpcKind.builtIn && gateway === undefined) return;
  const network = await lookUp(vpcKind, { workspace, kind: vpcKind.name, parent: "" }, name, deps);
  if (!network || network.deletedAt !== null)
    throw invalidField("spec.vpc", `there is no VPC '${name}' in this workspace`);
  if (gateway === undefined) return;
  const scope = { workspace, kind: egressGateway.name, parent: network.uid };
  if (!(await deps.store.resources.get(scope, gateway)))
    throw invalidField("spec.network.egress.gateway", `there is no egress gateway '${gateway}' in the VPC '${name}'`);
  await warnWithoutNat(
    context,
    "only connections through the proxy leave from the gateway's addresses. A workload has",
  );
}

/** The addresses that a workload on this node leaves from; null for a workload without a gateway. */
export async function sourcesOf(
  { workspace, spec }: Pick<Resource, "workspace" | "spec">,
  node: string,
  { resources }: Pick<Store, "resources">,
): Promise<SourceAddresses | null> {
  const name = gatewayOf(spec);
  if (name === undefined) return null;
  const vpc = await resources.get({ workspace, kind: vpcKind.name, parent: "" }, vpcNameOf(spec));
  const gateway = vpc && (await resources.get({ workspace, kind: egressGateway.name, parent: vpc.uid }, name));
  const ips = gateway ? await resources.childrenOf(workspace, gateway.uid, egressIp.name) : [];
  const addresses = ips.filter((ip) => leavesFrom(ip, node)).map((ip) => String(ip.spec.publicIp));
  return {
    gateway: name,
    ipv4: addresses.filter((address) => !address.includes(":")),
    ipv6: addresses.filter((address) => address.includes(":")),
    choice: SOURCE_CHOICES.find((choice) => choice === gateway?.spec.addressChoice) ?? "destination",
  };
}
