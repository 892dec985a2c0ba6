import { invalidField, PlatformError } from "../../contract/errors.ts";
import { canonicalJson } from "../../lib/canonical-json.ts";
import { isOffered, parseRoute } from "../../lib/network/egress/operator-networks.ts";
import { RuleProblem } from "../../lib/network/egress/rule-problem.ts";
import type { VpcRoute } from "../../lib/network/egress/workload-vpc.ts";
import { type Behaviour, type Input, type PrepareContext, workspaceOf } from "../port.ts";
import { warnWithoutNat } from "../workload/without-nat.ts";
import { type Vpc, vpc } from "./kind.ts";
import { MEMBER_KINDS } from "./members.ts";

export const vpcBehaviour: Behaviour<Vpc> = {
  kind: vpc,
  childrenFirst: true,
  async prepare(input, context) {
    requireRoutes(input, context);
    await tellOfProxy(input, context);
  },
  async guardDelete({ name, workspace }, { store }) {
    const [user] = await store.resources.listWithSpecText(
      [workspace],
      MEMBER_KINDS,
      [`"vpc":${JSON.stringify(name)}`],
      1,
    );
    if (user)
      throw new PlatformError("conflict", `vpc '${name}' is in use by ${user.kind} '${user.name}'. Delete that first.`);
  },
};

/** A route opens a network of the operator, so the operator has to offer the network and an admin has to ask for it. */
function requireRoutes({ spec }: Input<Vpc>, { call, current, deps }: PrepareContext<Vpc>): void {
  const { routes = [] } = spec;
  if (canonicalJson([routes]) === canonicalJson([current?.spec.routes ?? []])) return;
  if (call.role !== "admin")
    throw new PlatformError("forbidden", "Routes of a VPC lead to networks of the operator: an admin has to set them.");
  const workspace = workspaceOf(call).name;
  for (const [index, cidr] of routes.entries()) {
    const path = `spec.routes[${index}]`;
    if (!isOffered(deps.settings.vpcNetworks, workspace, understood(cidr, path)))
      throw invalidField(path, `'${cidr}' is in no network that the operator offers this workspace (vpc_networks)`);
  }
}

function understood(cidr: string, path: string): VpcRoute {
  try {
    return parseRoute(cidr, path);
  } catch (error) {
    throw error instanceof RuleProblem ? invalidField(error.path, error.rule) : error;
  }
}

/** Without a network of its own a workload has nothing but the egress proxy. */
async function tellOfProxy({ spec }: Input<Vpc>, context: PrepareContext<Vpc>): Promise<void> {
  const { current } = context;
  const { internal, routes } = spec;
  const isSame = canonicalJson([internal, routes]) === canonicalJson([current?.spec.internal, current?.spec.routes]);
  if (isSame || (internal !== true && !routes?.length)) return;
  await warnWithoutNat(context, "members use");
}
