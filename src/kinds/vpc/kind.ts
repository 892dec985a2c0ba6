import { z } from "zod";
import { defineKind } from "../../contract/kind.ts";

export const vpc = defineKind({
  name: "vpc",
  plural: "vpcs",
  summary: "A private network; every workspace has one named default",
  param: "vpcName",
  verbs: ["list", "get", "create", "delete"],
  spec: z.looseObject({}),
  specOptional: true,
  builtIn: "default",
  initialStatus: "DEPLOYED",
});
