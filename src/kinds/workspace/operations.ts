import { z } from "zod";
import * as fields from "../../contract/fields.ts";
import { defineOperation } from "../../contract/operation.ts";
import { signingKey } from "./signing-key.ts";

const GROUP_MAPPINGS_MAX = 100;
const REGION_MAX = 64;

const role = z.enum(["admin", "member"]);

const SIGNING_KEYS_MAX = 10;

const runtime = z.looseObject({
  imageSignatures: z
    .object({ publicKeys: z.array(signingKey).min(1).max(SIGNING_KEYS_MAX) })
    .optional()
    .describe("Run only images that one of these keys signed (cosign)."),
  generation: z.string().max(32).optional(),
  sandbox: z.looseObject({ disableProcessLogging: z.boolean().optional() }).optional(),
});

const members = {
  displayName: fields.displayName.optional(),
  region: z.string().min(1).max(REGION_MAX).optional().describe("Where writes go; the server's region when left out."),
  labels: fields.labels.optional(),
  groupMappings: z
    .array(z.looseObject({ groupName: z.string().min(1).max(256), role }))
    .max(GROUP_MAPPINGS_MAX)
    .optional()
    .describe("Which role the members of a directory group get."),
  runtime: runtime.optional(),
  accountId: z.string().max(64).optional(),
};

export const workspaceStatus = z.enum([
  "created",
  "account_binded",
  "account_configured",
  "workspace_configured",
  "ready",
  "error",
]);

export const workspaceShape = z.looseObject({
  id: z.string(),
  name: z.string(),
  displayName: z.string(),
  accountId: z.string(),
  region: z.string(),
  labels: z.record(z.string(), z.string()),
  groupMappings: z.array(z.object({ groupName: z.string(), role: z.string() })),
  runtime,
  resourceCounts: z.record(z.string(), z.int()).optional(),
  status: workspaceStatus,
  statusReason: z.string().optional(),
  createdAt: z.string(),
  updatedAt: z.string(),
  createdBy: z.string(),
  updatedBy: z.string(),
});

const common = { kind: "workspace", role: "member" } as const;
const one = { ...common, tenancy: "workspace", workspaceParam: "workspaceName" } as const;

export const workspaceList = defineOperation({
  ...common,
  id: "workspaceList",
  method: "GET",
  path: "/workspaces",
  summary: "List the workspaces you can see",
  tenancy: "caller",
  scope: "workspaces:list",
  response: z.array(workspaceShape),
  verb: "list",
});

export const workspaceGet = defineOperation({
  ...one,
  id: "workspaceGet",
  method: "GET",
  path: "/workspaces/{workspaceName}",
  summary: "Read one workspace",
  scope: "workspaces:get",
  query: z.object({ countResources: z.stringbool().optional().describe("Also count what is in it.") }),
  response: workspaceShape,
  verb: "get",
});

export const workspaceCreate = defineOperation({
  ...common,
  id: "workspaceCreate",
  method: "POST",
  path: "/workspaces",
  summary: "Create a workspace; you become its admin",
  tenancy: "caller",
  scope: "workspaces:create",
  body: z.looseObject({ name: fields.name, ...members }),
  response: workspaceShape,
  verb: "create",
});

export const workspaceUpdate = defineOperation({
  ...one,
  id: "workspaceUpdate",
  method: "PUT",
  path: "/workspaces/{workspaceName}",
  summary: "Change a workspace; what is left out stays as it is",
  role: "admin",
  scope: "workspaces:update",
  body: z.looseObject({ name: z.string().optional(), ...members }),
  response: workspaceShape,
  verb: "update",
});

export const workspaceDelete = defineOperation({
  ...one,
  id: "workspaceDelete",
  method: "DELETE",
  path: "/workspaces/{workspaceName}",
  summary: "Delete a workspace and everything in it",
  role: "admin",
  scope: "workspaces:delete",
  response: workspaceShape.extend({ message: z.string() }),
  verb: "delete",
});

export const workspaceLeave = defineOperation({
  ...one,
  id: "workspaceLeave",
  method: "DELETE",
  path: "/workspaces/{workspaceName}/leave",
  summary: "Give up your own membership of a workspace",
  scope: "workspaces:leave",
  response: workspaceShape,
});

export const availabilityReason = z.enum(["taken", "forbidden_reserved", "forbidden_service", "forbidden_v_prefix"]);

export const workspaceAvailability = defineOperation({
  ...common,
  id: "workspaceAvailability",
  method: "POST",
  path: "/workspaces/availability",
  summary: "Ask whether a workspace name can be had",
  tenancy: "caller",
  scope: null,
  query: z.object({ withReason: z.stringbool().optional().describe("Answer with an object that says why not.") }),
  body: z.looseObject({ name: fields.name }),
  response: z.union([
    z.boolean(),
    z.object({ available: z.boolean(), reason: availabilityReason.optional(), message: z.string().optional() }),
  ]),
});

export const workspaceOperations = [
  workspaceList,
  workspaceGet,
  workspaceCreate,
  workspaceUpdate,
  workspaceDelete,
  workspaceLeave,
  workspaceAvailability,
];
