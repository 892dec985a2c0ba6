/** A person's own API keys. The keys of a service account have the same shape, at paths below that account. */
import { z } from "zod";
import * as fields from "../../contract/fields.ts";
import { defineOperation } from "../../contract/operation.ts";

const SCOPES_MAX = 200;

/** The full key is shown once, when it is made. Lists show its first characters. */
export const apiKeyShape = z.looseObject({
  id: z.string(),
  name: z.string(),
  apiKey: z.string().optional().describe("The key itself, only in the answer that makes it."),
  prefix: z.string(),
  sub: z.string(),
  sub_type: z.enum(["user", "service_account"]),
  scopes: z.array(z.string()).optional(),
  workspace: z.string().optional().describe("Where a request goes that names no workspace."),
  expires_in: z.string().optional(),
  expiresAt: z.string().optional(),
  lastUsedAt: z.string().optional(),
  createdAt: z.string(),
  updatedAt: z.string(),
  createdBy: z.string(),
  updatedBy: z.string(),
});

/** Refuses unknown members: a misspelt `expires_in` or `scopes` would make a key that never ends or may do everything. */
export const newApiKey = z.strictObject({
  name: fields.displayName
    .refine((text) => text.trim() !== "", "must not be empty")
    .optional()
    .describe("How you tell the key from others; made up when left out."),
  expires_in: z
    .union([z.string().max(16), z.number()])
    .optional()
    .describe(
      "How long the key works: 30s, 15m, 24h, 30d, 1w, or a number of seconds, at most 10 years. Without it, until it is deleted.",
    ),
  scopes: z
    .array(z.string().max(64))
    .min(1)
    .max(SCOPES_MAX)
    .optional()
    .describe("What the key may be used for; everything its owner may do when left out."),
});

export const removed = z.object({ message: z.string() });

const common = { kind: "apikey", tenancy: "caller", role: "member" } as const;

export const apiKeyList = defineOperation({
  ...common,
  id: "apiKeyList",
  method: "GET",
  path: "/api_keys",
  summary: "List your own API keys",
  scope: "apiKey:list",
  response: z.array(apiKeyShape),
  verb: "list",
});

export const apiKeyCreate = defineOperation({
  ...common,
  id: "apiKeyCreate",
  method: "POST",
  path: "/api_keys",
  summary: "Create an API key for yourself",
  scope: "apiKey:write",
  body: newApiKey.extend({
    workspace: fields.name
      .optional()
      .describe("Where a request with this key goes that names no workspace; that of the key in use when left out."),
  }),
  response: apiKeyShape,
  verb: "create",
});

export const apiKeyDelete = defineOperation({
  ...common,
  id: "apiKeyDelete",
  method: "DELETE",
  path: "/api_keys/{apiKeyId}",
  summary: "Delete one of your API keys; it stops working at once",
  scope: "apiKey:write",
  response: removed,
  verb: "delete",
});

export const apiKeyOperations = [apiKeyList, apiKeyCreate, apiKeyDelete];
