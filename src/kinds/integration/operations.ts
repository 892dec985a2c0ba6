import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";

const tokenMembers = z.object({
  sent: z.string().optional(),
  received: z.string().optional(),
  total: z.string().optional(),
});

export const integrationGet = defineOperation({
  id: "integrationGet",
  method: "GET",
  path: "/integrations/{integrationName}",
  summary: "Describe a third-party service that connections can be made to",
  tenancy: "workspace",
  scope: "integrations:list",
  role: "member",
  response: z.object({
    name: z.string(),
    additionalInfos: z.record(z.string(), z.string()),
    endpoints: z.record(
      z.string(),
      z.object({ method: z.string(), token: tokenMembers.optional(), streamToken: tokenMembers.optional() }),
    ),
    headers: z.record(z.string(), z.string()),
    params: z.record(z.string(), z.string()),
    secrets: z.array(z.string()),
    needsSecret: z.boolean().optional().describe("A connection without one of the secrets cannot be used."),
    config: z.array(z.string()),
  }),
});
