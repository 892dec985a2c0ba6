import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";
import { model } from "./kind.ts";

export const USAGE_LIMIT_MAX = 1000;
const USAGE_LIMIT_DEFAULT = 100;
const NAME_MAX = 256;

const amounts = {
  requests: z.int(),
  unpricedRequests: z.int().describe("Requests to models without a price; their cost counts as 0."),
  estimatedRequests: z.int().describe("Requests whose tokens the provider did not report in full."),
  cacheHits: z.int().describe("Requests that were answered from the cache (`spec.cache`), without tokens or cost."),
  inputTokens: z.int().describe("Cached ones included."),
  outputTokens: z.int(),
  cachedInputTokens: z.int(),
  cost: z.number().describe("USD, at the providers' prices."),
};

export const modelUsage = defineOperation({
  id: "modelUsage",
  method: "GET",
  path: "/usage/models",
  summary: "Tokens and cost of the workspace's models, by model and by key",
  tenancy: "workspace",
  scope: "models:list",
  role: "member",
  query: z.object({
    startTime: z.string().optional().describe("RFC 3339, UTC; inclusive. Default: 30 days before the end."),
    endTime: z.string().optional().describe("RFC 3339, UTC; exclusive. Default: now."),
    groupBy: z.string().default("model").describe("One or more of model, key, workspace, separated by commas."),
    model: z.string().min(1).max(NAME_MAX).optional().describe("Only this model."),
    limit: z.coerce
      .number()
      .int()
      .min(1)
      .default(USAGE_LIMIT_DEFAULT)
      .describe(`At most ${USAGE_LIMIT_MAX}, default ${USAGE_LIMIT_DEFAULT}.`),
    cursor: z.string().optional().describe("From `meta.nextCursor` of the page before."),
  }),
  response: z.object({
    startTime: z.string(),
    endTime: z.string(),
    summary: z.object(amounts).describe("Over all groups, not only those of the page."),
    data: z.array(
      z.object({
        workspace: z.string().optional(),
        model: z.string().optional(),
        key: z
          .object({ type: z.string(), id: z.string(), name: z.string().optional() })
          .nullable()
          .optional()
          .describe("The API key, or who called with a token; the name as long as the key exists."),
        ...amounts,
      }),
    ),
    meta: z.object({ hasMore: z.boolean(), nextCursor: z.string().describe("Empty on the last page.") }),
  }),
  kind: model.name,
});
