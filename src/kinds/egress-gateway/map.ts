/** The ways out of a workspace: each egress gateway with its addresses and the workloads that leave by it. */
import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";
import type { Resource } from "../../store/resources/resource.ts";

/** Workloads that are named for one gateway; the number tells of all. */
export const NAMED_MAX = 200;

const way = z.object({
  gateway: z.string(),
  vpc: z.string(),
  status: z.string(),
  addresses: z.array(
    z.object({
      name: z.string(),
      ip: z.string().nullable().describe("Null while the pool has no free address."),
      status: z.string(),
    }),
  ),
  workloads: z
    .array(z.object({ kind: z.string(), name: z.string() }))
    .describe(`The first ${NAMED_MAX} workloads, by kind and name.`),
  workloadCount: z.int().describe("All workloads that leave by the gateway."),
});

export const egressMapGet = defineOperation({
  id: "egressMapGet",
  method: "GET",
  path: "/egressgateways/map",
  summary: "Tell which workloads leave by which gateway, and from which addresses",
  tenancy: "workspace",
  role: "member",
  scope: "egressgateways:list",
  response: z.array(way),
});

export interface Found {
  gateways: readonly Resource[];
  /** Name of the VPC of a gateway, by the uid of the VPC. */
  vpcs: ReadonlyMap<string, string>;
  ips: readonly Resource[];
  workloads: readonly Resource[];
  gatewayOf(workload: Resource): string;
}

export function egressMap({ gateways, vpcs, ips, workloads, gatewayOf }: Found): z.output<typeof way>[] {
  const behind = Map.groupBy(workloads, gatewayOf);
  const addresses = Map.groupBy(ips, ({ parent }) => parent);
  return gateways.map(({ uid, name, parent, status }) => {
    const leaving = (behind.get(name) ?? []).map((workload) => ({ kind: workload.kind, name: workload.name }));
    return {
      ...{ gateway: name, vpc: vpcs.get(parent) ?? "", status: status ?? "" },
      addresses: (addresses.get(uid) ?? []).map((ip) => ({
        ...{ name: ip.name, status: ip.status ?? "" },
        ip: typeof ip.spec.publicIp === "string" ? ip.spec.publicIp : null,
      })),
      workloads: leaving.sort(byKindAndName).slice(0, NAMED_MAX),
      workloadCount: leaving.length,
    };
  });
}

interface Named {
  kind: string;
  name: string;
}

const byKindAndName = (a: Named, b: Named): number =>
  a.kind === b.kind ? (a.name < b.name ? -1 : 1) : a.kind < b.kind ? -1 : 1;
