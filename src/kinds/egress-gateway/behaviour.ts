import { PlatformError } from "../../contract/errors.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { type Behaviour, implement, type Platform, workspaceOf } from "../port.ts";
import { toWire } from "../present.ts";
import { chosenRegion } from "../region.ts";
import { workloadSpec } from "../workload/spec.ts";
import { egressGateway, egressGatewayListAll, egressGatewayUsage } from "./kind.ts";
import { egressMap, egressMapGet } from "./map.ts";

/** Gateways in the list over all VPCs. A workspace with more lists them VPC by VPC. */
const FLAT_LIST_MAX = 1000;

export const egressGatewayBehaviour: Behaviour = {
  kind: egressGateway,
  childrenFirst: true,
  prepare(input, { deps }) {
    input.spec.region = chosenRegion("spec.region", input.spec.region, null, deps.settings);
  },
  present(wire, _resource, { parents }) {
    wire.metadata.vpcName = parents[0]?.name;
  },
  async guardDelete({ name, workspace }, deps) {
    const [user] = await workloadsBehind(workspace, deps, name);
    if (user)
      throw new PlatformError(
        "conflict",
        `egressgateway '${name}' is in use by ${user.kind} '${user.name}'. Delete that first.`,
      );
  },
  handlers: [
    implement(egressGatewayListAll, async (call, deps) => {
      const gateways = await deps.store.resources.listNested(workspaceOf(call).name, "egressgateway", FLAT_LIST_MAX);
      const parents = await parentsOf(gateways, deps);
      return gateways.map((gateway) =>
        toWire(egressGatewayBehaviour, gateway, { parents: parents.get(gateway.parent) ?? [], inList: true }, deps),
      );
    }),

    implement(egressGatewayUsage, async (call, deps) => {
      const { name: workspace } = workspaceOf(call);
      const gateways = await deps.store.resources.listNested(workspace, "egressgateway", FLAT_LIST_MAX);
      const usage = new Map(gateways.map((gateway) => [gateway.name, [] as string[]]));
      for (const workload of await workloadsBehind(workspace, deps))
        usage.get(gatewayOf(workload))?.push(workload.name);
      return Object.fromEntries(usage);
    }),

    implement(egressMapGet, async (call, deps) => {
      const { name: workspace } = workspaceOf(call);
      const [gateways, ips, workloads] = await Promise.all([
        deps.store.resources.listNested(workspace, "egressgateway", FLAT_LIST_MAX),
        deps.store.resources.listNested(workspace, "egressip", FLAT_LIST_MAX),
        workloadsBehind(workspace, deps),
      ]);
      const parents = await parentsOf(gateways, deps);
      const vpcs = new Map([...parents].map(([uid, [vpc]]) => [uid, vpc?.name ?? ""]));
      return egressMap({ gateways, vpcs, ips, workloads, gatewayOf });
    }),
  ],
};

/** The containers of each child, outermost first, keyed by the uid of the innermost container. */
export async function parentsOf(children: readonly Resource[], { store }: Platform): Promise<Map<string, Resource[]>> {
  const paths = new Map<string, Resource[]>();
  for (const { workspace, parent } of children) {
    if (paths.has(parent)) continue;
    const path: Resource[] = [];
    for (let uid = parent; uid !== ""; uid = path[0]?.parent ?? "") {
      const container = await store.resources.getByUid(workspace, uid);
      if (!container) break;
      path.unshift(container);
    }
    paths.set(parent, path);
  }
  return paths;
}

const gatewayOf = ({ spec }: Resource): string => workloadSpec(spec).network?.egress?.gateway ?? "";

const WORKLOADS = ["sandbox", "agent", "function", "application", "job"];

/** Workloads of every kind whose spec names this egress gateway, or any gateway when none is given. */
async function workloadsBehind(workspace: string, { store }: Platform, gateway?: string): Promise<Resource[]> {
  const text = gateway === undefined ? '"gateway":"' : `"gateway":${JSON.stringify(gateway)}`;
  const candidates = await store.resources.listWithSpecText([workspace], WORKLOADS, [text], WORKLOADS_MAX);
  return candidates.filter((each) => (gateway === undefined ? gatewayOf(each) : gatewayOf(each) === gateway));
}

/** As many workloads as one address can serve. */
const WORKLOADS_MAX = 32_000;
