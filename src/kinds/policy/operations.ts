import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";
import { policy } from "./kind.ts";

const user = z.looseObject({ name: z.string(), workspace: z.string(), type: z.string() });

export const policyUsages = defineOperation({
  id: "policyUsages",
  method: "GET",
  path: `${policy.itemPath}/usages`,
  summary: "List the resources that name a policy",
  tenancy: "workspace",
  scope: "policies:get",
  role: "member",
  response: z.object({
    agents: z.array(user),
    functions: z.array(user),
    jobs: z.array(user),
    models: z.array(user),
    sandboxes: z.array(user),
  }),
  kind: policy.name,
});
