import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";

const window = {
  startTime: z.string().describe("RFC 3339, UTC; inclusive."),
  endTime: z.string().describe("RFC 3339, UTC; exclusive."),
};

const filters = {
  workspace: z.string().optional().describe("Account admins only."),
  resourceType: z.string().optional(),
  resourceName: z.string().optional(),
  resourceUuid: z.string().optional(),
  billingDimension: z.string().optional(),
};

const usage = z.number().optional().describe("Only when billing_dimension is among the groupBy dimensions.");
const cost = z.number().describe("USD.");

export const accountMetrics = defineOperation({
  id: "accountMetrics",
  method: "GET",
  path: "/accounts/{accountId}/metrics",
  summary: "Cost and usage of an account over time",
  tenancy: "account",
  scope: "admin",
  role: "member",
  // Only an account admin may look at the account workspace by workspace.
  adminUses: [
    { query: "workspace=NAME", applies: ({ workspace }) => workspace !== undefined },
    { query: "groupBy=workspace", applies: ({ groupBy }) => groupBy?.includes("workspace") ?? false },
  ],
  // Unknown parameters reach the handler, which refuses them by name.
  query: z.looseObject({
    ...window,
    resolution: z.string().optional().describe("hourly, daily, weekly or monthly; chosen from the window when absent."),
    groupBy: z
      .string()
      .optional()
      .describe(
        "Up to three of workspace, resource_type, resource_name, resource_uuid, billing_dimension, separated by commas.",
      ),
    ...filters,
    limit: z.string().optional().describe("Entries on a page: 100 when absent and at most."),
    cursor: z.string().optional().describe("meta.nextCursor of the page before."),
  }),
  response: z.object({
    startTime: z.string(),
    endTime: z.string(),
    resolution: z.string(),
    summary: z.object({ totalCost: cost, totalUsage: usage }),
    data: z.array(
      z.object({
        workspace: z.string().optional(),
        resourceType: z.string().optional(),
        resourceName: z.string().optional(),
        resourceUuid: z.string().optional(),
        billingDimension: z.string().optional(),
        summary: z.object({ cost, usage }),
        timeseries: z.array(z.object({ timestamp: z.string(), cost, usage })),
      }),
    ),
    meta: z.object({ hasMore: z.boolean(), nextCursor: z.string().describe("Empty on the last page.") }),
  }),
  kind: "account",
});

export const accountMetricsGroupBy = defineOperation({
  id: "accountMetricsGroupBy",
  method: "GET",
  path: "/accounts/{accountId}/metrics/enums/group-by",
  summary: "What metrics can be grouped by",
  tenancy: "account",
  scope: "admin",
  role: "member",
  response: z.object({ values: z.array(z.string()) }),
  kind: "account",
});

export const accountMetricsResourceTypes = defineOperation({
  id: "accountMetricsResourceTypes",
  method: "GET",
  path: "/accounts/{accountId}/metrics/enums/resource-types",
  summary: "Resource types that were used in a window",
  tenancy: "account",
  scope: "admin",
  role: "member",
  query: z.looseObject(window),
  response: z.object({ values: z.array(z.string()) }),
  kind: "account",
});

const price = z.object({
  dimension: z.string(),
  usd: z.string().describe("For one unit, as a decimal text."),
  from: z.string().optional().describe("RFC 3339, a full UTC hour; absent = ever since."),
});

export const accountPrices = defineOperation({
  id: "accountPrices",
  method: "GET",
  path: "/accounts/{accountId}/metrics/prices",
  summary: "The prices in force",
  tenancy: "account",
  scope: "admin",
  role: "member",
  response: z.object({ currency: z.literal("USD"), price: z.array(price.extend({ unit: z.string() })) }),
  kind: "account",
});

export const accountReprice = defineOperation({
  id: "accountReprice",
  method: "POST",
  path: "/accounts/{accountId}/metrics/reprice",
  summary: "What the full hours of a window would cost at other prices; nothing is changed",
  tenancy: "account",
  scope: "admin",
  role: "admin",
  body: z.object({ ...window, price: z.array(price).max(1000) }),
  response: z.object({
    startTime: z.string(),
    endTime: z.string(),
    summary: z.object({ totalCost: cost, repricedCost: cost }),
    data: z.array(z.object({ billingDimension: z.string(), usage: z.number(), cost, repricedCost: cost })),
  }),
  kind: "account",
});

export const accountMetricsRebuild = defineOperation({
  id: "accountMetricsRebuild",
  method: "POST",
  path: "/accounts/{accountId}/metrics/rebuild",
  summary: "Make the sums of the months in a window anew from their events, at the prices in force",
  tenancy: "account",
  scope: "admin",
  role: "admin",
  body: z.object(window),
  response: z.object({ startTime: z.string(), endTime: z.string() }),
  kind: "account",
});

export const accountUsageEvents = defineOperation({
  id: "accountUsageEvents",
  method: "GET",
  path: "/accounts/{accountId}/metrics/events",
  summary: "The single events that costs are made of, in the order of time",
  tenancy: "account",
  scope: "admin",
  role: "admin",
  query: z.looseObject({
    ...window,
    ...filters,
    limit: z.string().optional().describe("Events on a page: 100 when absent, 1000 at most."),
    cursor: z.string().optional(),
  }),
  response: z.object({
    data: z.array(
      z.object({
        workspace: z.string(),
        resourceType: z.string(),
        resourceName: z.string(),
        resourceUuid: z.string(),
        billingDimension: z.string(),
        usedBy: z.string().optional().describe("Type and id of the key or the caller, where that is told apart."),
        startTime: z.string(),
        endTime: z.string().describe("Equals startTime for what happened at one moment."),
        usage: z.number(),
        key: z.string(),
      }),
    ),
    meta: z.object({ hasMore: z.boolean(), nextCursor: z.string() }),
  }),
  kind: "account",
});

export const metricsOperations = [
  accountMetrics,
  accountMetricsGroupBy,
  accountMetricsResourceTypes,
  accountPrices,
  accountReprice,
  accountMetricsRebuild,
  accountUsageEvents,
];
