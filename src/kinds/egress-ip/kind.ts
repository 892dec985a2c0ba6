import { z } from "zod";
import { defineKind } from "../../contract/kind.ts";
import { defineOperation } from "../../contract/operation.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";
import { egressGateway } from "../egress-gateway/kind.ts";
import type { Holdings } from "./holdings.ts";

export type EgressIp = ResourceOf<typeof egressIp>;

export const egressIp = defineKind({
  name: "egressip",
  plural: "egressips",
  summary: "An address that outbound traffic of a gateway comes from",
  path: "/ips",
  param: "ipName",
  within: egressGateway,
  verbs: ["list", "get", "create", "delete"],
  readOnlyMetadata: { vpcName: z.string().optional(), gatewayName: z.string().optional() },
  spec: z.looseObject({
    ipFamily: z.enum(["IPv4", "IPv6"]).optional().describe("IPv4 when left out."),
    publicIp: z.string().optional().describe("Set by the platform once it has an address."),
  }),
  recorded: z.custom<{ holdings?: Holdings }>(),
  readOnlySpec: ["publicIp"],
  initialStatus: "DEPLOYING",
});

export const egressIpListAll = defineOperation({
  id: "egressIpListAll",
  method: "GET",
  path: "/egressips",
  summary: "List the egress IPs of all gateways",
  tenancy: "workspace",
  role: "member",
  scope: "egressips:list",
  response: z.array(egressIp.resource),
});

export const egressIpOperations = [egressIpListAll];
