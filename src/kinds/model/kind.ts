import { z } from "zod";
import * as fields from "../../contract/fields.ts";
import { defineKind } from "../../contract/kind.ts";
import { modelBalance } from "../../contract/model-balance.ts";
import { modelCache } from "../../contract/model-cache.ts";
import { modelGuardrails } from "../../contract/model-guardrails.ts";
import { modelPrices } from "../../contract/model-prices.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";
import * as workload from "../workload/spec.ts";

/** Fallback models that a request can be tried at. */
const FALLBACKS_MAX = 8;

export type Model = ResourceOf<typeof model>;

export const model = defineKind({
  name: "model",
  plural: "models",
  summary: "A model API of a provider, behind the platform's keys, policies and meters",
  param: "modelName",
  verbs: ["list", "get", "create", "update", "delete"],
  spec: z.looseObject({
    enabled: workload.common.enabled,
    policies: workload.common.policies,
    integrationConnections: fields.names.optional().describe("The connection that holds the provider's key."),
    fallbacks: fields.names.max(FALLBACKS_MAX).optional().describe("Models tried in this order when this one fails."),
    flavors: z
      .array(z.looseObject({ name: z.string().optional(), type: z.string().optional() }))
      .max(fields.LIST_MAX)
      .optional(),
    runtime: z
      .looseObject({
        type: z.string().max(64).optional().describe("The provider; an unknown one is taken to be OpenAI-compatible."),
        model: z.string().max(256).optional().describe("The provider's name for it; default the resource's own name."),
        endpointName: z
          .string()
          .max(2048)
          .optional()
          .describe("The resource at Azure, or the https address of a dedicated endpoint at Azure or Hugging Face."),
        organization: z.string().max(256).optional(),
        generation: fields.generation,
      })
      .optional(),
    balance: modelBalance
      .optional()
      .describe("Divides requests between this model and others, and leaves out those that fail."),
    guardrails: modelGuardrails
      .optional()
      .describe("What requests and answers must not carry, and a webhook that is asked about them."),
    cache: modelCache.optional().describe("Answers are kept in memory, for requests that are the same."),
    prices: modelPrices
      .optional()
      .describe("What the provider charges, in USD per million tokens; default the price book's."),
    sandbox: z.boolean().optional(),
  }),
  secrets: ["spec.guardrails.webhook.secret"],
  references: [
    workload.policies,
    workload.connections,
    { path: "spec.fallbacks[]", kind: "model" },
    { path: "spec.balance.models[].name", kind: "model" },
    { path: "spec.cache.semantic.model", kind: "model" },
  ],
  revisions: true,
  initialStatus: "DEPLOYED",
  paged: true,
});
