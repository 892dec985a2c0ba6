import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";
import { policy } from "./kind.ts";

const users = z.array(z.looseObject({ name: z.string(), workspace: z.string(), type: z.string() }));

export const policyUsages = defineOperation({
  id: "policyUsages",
  method: "GET",
  path: `${policy.itemPath}/usages`,
  summary: "List the resources that a policy applies to, at most 1,000 of each kind",
  tenancy: "workspace",
  scope: "policies:get",
  role: "member",
  response: z.object({
    agents: users,
    applications: users,
    functions: users,
    jobs: users,
    models: users,
    sandboxes: users,
  }),
  kind: policy.name,
});
