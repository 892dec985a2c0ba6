import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";
import { model } from "./kind.ts";

export const USAGE_LIMIT_MAX = 1000;
const USAGE_LIMIT_DEFAULT = 100;
const NAME_MAX = 256;

const key = z
  .object({ type: z.string(), id: z.string(), name: z.string().optional() })
  .describe("The API key, or who called with a token; the name as long as the key exists.");

const amounts = {
  requests: z.int(),
  unpricedRequests: z.int().describe("Requests to models without a price; their cost counts as 0."),
  estimatedRequests: z.int().describe("Requests whose tokens the provider did not report in full."),
  cacheHits: z.int().describe("Requests that were answered from the cache (`spec.cache`), without tokens or cost."),
  similarHits: z
    .int()
    .describe("Requests that got the kept answer of a question with the same meaning (`spec.cache.semantic`)."),
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
      .describe(`At most ${USAGE_LIMIT_MAX}, more counts as that; default ${USAGE_LIMIT_DEFAULT}.`),
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
        key: key.nullable().optional(),
        ...amounts,
      }),
    ),
    meta: z.object({ hasMore: z.boolean(), nextCursor: z.string().describe("Empty on the last page.") }),
  }),
  kind: model.name,
});

const common = { tenancy: "workspace", role: "member", kind: model.name } as const;

/** Requests on a page. */
export const REQUESTS_MAX = 200;
const REQUESTS_DEFAULT = 50;

export const modelRequests = defineOperation({
  ...common,
  id: "modelRequests",
  method: "GET",
  path: `${model.itemPath}/requests`,
  summary: "The single requests to a model, newest first: who asked, tokens, cost",
  scope: "models:list",
  query: z.object({
    startTime: z.string().optional().describe("RFC 3339, UTC; inclusive. Default: a day before the end."),
    endTime: z.string().optional().describe("RFC 3339, UTC; exclusive. Default: now."),
    limit: z.coerce
      .number()
      .int()
      .min(1)
      .default(REQUESTS_DEFAULT)
      .describe(`At most ${REQUESTS_MAX}, more counts as that; default ${REQUESTS_DEFAULT}.`),
    cursor: z.string().optional().describe("From `meta.nextCursor` of the page before."),
  }),
  response: z.object({
    data: z.array(
      z.object({
        id: z.string().describe("The `X-Request-Id` of its answer."),
        time: z.string(),
        key: key.nullable(),
        inputTokens: z.int().describe("Cached ones included."),
        outputTokens: z.int(),
        cachedInputTokens: z.int(),
        cost: z.number().describe("USD, at the provider's prices."),
        priced: z.boolean().describe("False: nobody knows a price, and the cost of 0 says nothing."),
        estimated: z.boolean().describe("True: the provider did not report all tokens."),
        cached: z.boolean().describe("True: answered from the cache (`spec.cache`)."),
        similar: z.boolean().describe("True: got the kept answer of a question with the same meaning."),
      }),
    ),
    meta: z.object({ hasMore: z.boolean(), nextCursor: z.string().describe("Empty on the last page.") }),
  }),
});

export const modelBudget = defineOperation({
  ...common,
  id: "modelBudget",
  method: "GET",
  path: `${model.itemPath}/budget`,
  summary: "What the token policies of a model leave to you in the windows that are open now",
  scope: "models:get",
  response: z.object({
    policies: z.array(
      z.object({
        policy: z.string(),
        per: z.enum(["policy", "key", "session"]).describe("Whose requests are counted together."),
        startTime: z.string(),
        endTime: z.string().describe("When the next window opens."),
        limits: z.array(
          z.object({
            name: z.enum(["input", "output", "total", "requests"]),
            limit: z.int(),
            used: z.int().describe("By requests that have finished."),
            left: z.int(),
          }),
        ),
      }),
    ),
  }),
});

export const modelOperations = [modelUsage, modelRequests, modelBudget];
