import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";

export const quotaList = defineOperation({
  id: "quotaList",
  method: "GET",
  path: "/quotas",
  summary: "Read how much of each kind the workspace may have, and how much it has",
  tenancy: "workspace",
  scope: "workspaces:get",
  role: "member",
  response: z.object({
    workspace: z.string(),
    quotas: z.array(
      z.object({
        resource: z.string(),
        limit: z.int().nullable().describe("null: no limit."),
        used: z.int(),
        remaining: z.int().nullable(),
      }),
    ),
  }),
});

export const quotaOperations = [quotaList];
