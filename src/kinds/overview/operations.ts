/** The workspace at a glance. */
import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";

/** Failures in an overview, the latest ones. */
export const FAILURES_MAX = 10;

export const overviewGet = defineOperation({
  id: "overviewGet",
  method: "GET",
  path: "/overview",
  summary: "What the workspace holds by kind and status, the latest failures, and the cost of today",
  tenancy: "workspace",
  scope: "workspaces:get",
  role: "member",
  kind: "overview",
  response: z.object({
    workspace: z.string(),
    time: z.string(),
    kinds: z
      .array(
        z.object({
          kind: z.string(),
          plural: z.string(),
          total: z.int(),
          statuses: z.record(z.string(), z.int()).describe("Empty for kinds without a status."),
        }),
      )
      .describe("Every kind that the credentials may list, also without resources."),
    failures: z
      .array(
        z.object({
          kind: z.string(),
          name: z.string(),
          uid: z.string(),
          status: z.string(),
          reason: z.string(),
          time: z.string().describe("When the resource got this status."),
        }),
      )
      .describe(`The latest first, at most ${FAILURES_MAX}. Resources inside others are left out.`),
    cost: z
      .object({ today: z.number(), currency: z.literal("USD"), since: z.string() })
      .optional()
      .describe("Since midnight UTC. Absent for credentials that may not read the metrics of the account."),
  }),
  verb: "get",
});

export const overviewOperations = [overviewGet];
