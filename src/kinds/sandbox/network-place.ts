/** Requires that the network resources named in a sandbox's spec exist. */
import { invalidField } from "../../contract/errors.ts";
import { egressGateway } from "../egress-gateway/kind.ts";
import { lookUp } from "../place.ts";
import { type Input, type PrepareContext, workspaceOf } from "../port.ts";
import { vpc as vpcKind } from "../vpc/kind.ts";

/** Values that the sandbox already has may be written back unchecked. */
export async function requireNetwork({ spec }: Input, { call, current, deps }: PrepareContext): Promise<void> {
  const workspace = workspaceOf(call).name;
  const name = String(spec.vpc ?? vpcKind.builtIn);
  const gateway = gatewayOf(spec);
  const isNew = current === null || name !== current.spec.vpc;
  if (!isNew && gateway === (current ? gatewayOf(current.spec) : undefined)) return;
  if (name === vpcKind.builtIn && gateway === undefined) return;
  const network = await lookUp(vpcKind, { workspace, kind: vpcKind.name, parent: "" }, name, deps);
  if (!network || network.deletedAt !== null)
    throw invalidField("spec.vpc", `there is no VPC '${name}' in this workspace`);
  if (gateway === undefined) return;
  const scope = { workspace, kind: egressGateway.name, parent: network.uid };
  if (!(await deps.store.resources.get(scope, gateway)))
    throw invalidField("spec.network.egress.gateway", `there is no egress gateway '${gateway}' in the VPC '${name}'`);
}

const gatewayOf = (spec: Record<string, unknown>): string | undefined =>
  (spec.network as { egress?: { gateway?: string } } | undefined)?.egress?.gateway || undefined;
