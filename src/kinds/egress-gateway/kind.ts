import { z } from "zod";
import { defineKind } from "../../contract/kind.ts";
import { defineOperation } from "../../contract/operation.ts";
import { SOURCE_CHOICES } from "../../lib/network/egress/source-addresses.ts";
import { vpc } from "../vpc/kind.ts";
import { egressMapGet } from "./map.ts";

export const egressGateway = defineKind({
  name: "egressgateway",
  plural: "egressgateways",
  summary: "Where the traffic of a VPC leaves the platform, with addresses of its own",
  param: "gatewayName",
  within: vpc,
  verbs: ["list", "get", "create", "delete"],
  readOnlyMetadata: { vpcName: z.string().optional() },
  spec: z.looseObject({
    region: z.string().min(1).max(64).optional().describe("The server's region when left out."),
    addressChoice: z
      .enum(SOURCE_CHOICES)
      .optional()
      .describe("How several addresses are used: the same for one destination (when left out), or in turn."),
  }),
  specOptional: true,
  initialStatus: "DEPLOYING",
});

const flat = { method: "GET", tenancy: "workspace", role: "member", scope: "egressgateways:list" } as const;

export const egressGatewayListAll = defineOperation({
  ...flat,
  id: "egressGatewayListAll",
  path: "/egressgateways",
  summary: "List the egress gateways of all VPCs",
  response: z.array(egressGateway.resource),
});

export const egressGatewayUsage = defineOperation({
  ...flat,
  id: "egressGatewayUsage",
  path: "/egressgateways/usage",
  summary: "List the names of the workloads, of every kind, that leave by each gateway",
  response: z.record(z.string(), z.array(z.string())),
});

export const egressGatewayOperations = [egressGatewayListAll, egressGatewayUsage, egressMapGet];
