/** Identities for machines: each works in one workspace, with a role of its own. */
import { z } from "zod";
import * as fields from "../../contract/fields.ts";
import { defineOperation } from "../../contract/operation.ts";
import { apiKeyShape, newApiKey, removed } from "../api-key/operations.ts";

const DESCRIPTION_MAX = 512;
const role = z.enum(["admin", "member"]);

export const serviceAccountShape = z.looseObject({
  client_id: z.string(),
  client_secret: z.string().optional().describe("Only in the answer that makes the account."),
  name: z.string(),
  description: z.string(),
  role,
  created_at: z.string(),
  updated_at: z.string(),
});

const name = fields.displayName.min(1);
const description = z.string().max(DESCRIPTION_MAX);
const common = { kind: "serviceaccount", tenancy: "workspace", role: "admin" } as const;

export const serviceAccountList = defineOperation({
  ...common,
  id: "serviceAccountList",
  method: "GET",
  path: "/service_accounts",
  summary: "List the service accounts of the workspace",
  role: "member",
  scope: "workspaces:get",
  response: z.array(serviceAccountShape),
  verb: "list",
});

export const serviceAccountCreate = defineOperation({
  ...common,
  id: "serviceAccountCreate",
  method: "POST",
  path: "/service_accounts",
  summary: "Create a service account; its client secret is shown once",
  scope: "workspaces:update",
  body: z.looseObject({
    name,
    description: description.optional(),
    role: role.optional().describe("`member` when left out."),
  }),
  response: serviceAccountShape,
  verb: "create",
});

export const serviceAccountUpdate = defineOperation({
  ...common,
  id: "serviceAccountUpdate",
  method: "PUT",
  path: "/service_accounts/{clientId}",
  summary: "Change a service account; what is left out stays as it is",
  scope: "workspaces:update",
  body: z.looseObject({ name: name.optional(), description: description.optional(), role: role.optional() }),
  response: serviceAccountShape,
  verb: "update",
});

export const serviceAccountDelete = defineOperation({
  ...common,
  id: "serviceAccountDelete",
  method: "DELETE",
  path: "/service_accounts/{clientId}",
  summary: "Delete a service account; its keys stop working at once",
  scope: "workspaces:update",
  response: serviceAccountShape,
  verb: "delete",
});

export const serviceAccountKeyList = defineOperation({
  ...common,
  id: "serviceAccountKeyList",
  method: "GET",
  path: "/service_accounts/{clientId}/api_keys",
  summary: "List the API keys of a service account",
  scope: "apiKey:list",
  response: z.array(apiKeyShape),
});

const s3 = z
  .object({ accessKeyId: z.string(), secretAccessKey: z.string(), endpoint: z.string(), region: z.string() })
  .optional()
  .describe("The key for S3 clients, only in the answer that makes it, when it was asked for.");

export const serviceAccountKeyCreate = defineOperation({
  ...common,
  id: "serviceAccountKeyCreate",
  method: "POST",
  path: "/service_accounts/{clientId}/api_keys",
  summary: "Create an API key for a service account; it is shown once",
  scope: "apiKey:write",
  body: newApiKey.extend({
    s3: z.boolean().optional().describe("Also answer with S3 credentials, which end with the key. Default false."),
  }),
  response: apiKeyShape.extend({ s3 }),
});

export const serviceAccountKeyDelete = defineOperation({
  ...common,
  id: "serviceAccountKeyDelete",
  method: "DELETE",
  path: "/service_accounts/{clientId}/api_keys/{apiKeyId}",
  summary: "Delete an API key of a service account; it stops working at once",
  scope: "apiKey:write",
  response: removed,
});

export const serviceAccountOperations = [
  serviceAccountList,
  serviceAccountCreate,
  serviceAccountUpdate,
  serviceAccountDelete,
  serviceAccountKeyList,
  serviceAccountKeyCreate,
  serviceAccountKeyDelete,
];
