/** Features that are switched on: capabilities of this installation, and flags that the operator sets. */
import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";

const common = { method: "GET", tenancy: "workspace", role: "member" } as const;

export const featureList = defineOperation({
  ...common,
  id: "featureList",
  path: "/features",
  summary: "List features and whether they are on",
  scope: "featureFlags:list",
  response: z.object({ features: z.record(z.string(), z.boolean()) }),
});

export const featureGet = defineOperation({
  ...common,
  id: "featureGet",
  path: "/features/{featureKey}",
  summary: "Ask whether one feature is on",
  scope: "featureFlags:get",
  query: z.object({ account: z.string().max(64).optional().describe("One of your accounts.") }),
  response: z.object({
    featureKey: z.string(),
    enabled: z.boolean(),
    variant: z.string(),
    evaluatedAt: z.string(),
    payload: z.record(z.string(), z.unknown()),
  }),
});

export const featureOperations = [featureList, featureGet];
