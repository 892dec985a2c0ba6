import { z } from "zod";
import { defineKind } from "../../contract/kind.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";

/** Routes of one VPC; each is an element of the packet filter for every VPC that has members on a server. */
const ROUTES_MAX = 64;
const CIDR_MAX = 64;

export type Vpc = ResourceOf<typeof vpc>;

export const vpc = defineKind({
  name: "vpc",
  plural: "vpcs",
  summary: "A private network; every workspace has one named default",
  param: "vpcName",
  verbs: ["list", "get", "create", "update", "delete"],
  spec: z.looseObject({
    internal: z
      .boolean()
      .optional()
      .describe("Workloads of the VPC reach each other as <name>.<vpc>.internal; default false."),
    routes: z
      .array(z.string().min(1).max(CIDR_MAX))
      .max(ROUTES_MAX)
      .optional()
      .describe("CIDRs of the operator's networks that workloads of the VPC reach. Set by admins; default none."),
  }),
  specOptional: true,
  builtIn: "default",
  initialStatus: "DEPLOYED",
});
