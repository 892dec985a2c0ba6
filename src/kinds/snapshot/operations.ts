import { z } from "zod";
import * as fields from "../../contract/fields.ts";
import { defineOperation } from "../../contract/operation.ts";
import { snapshot } from "./kind.ts";

export const snapshotDelete = defineOperation({
  id: "snapshotDelete",
  method: "DELETE",
  path: snapshot.itemPath,
  summary: "Delete a snapshot",
  tenancy: "workspace",
  scope: "sandboxes:delete",
  role: "member",
  response: z.null(),
  status: 204,
  kind: snapshot.name,
});

const targetType = z.enum(["sandbox", "application"]);
const port = z.int().min(1).max(65_535);

export const sandboxFork = defineOperation({
  id: "sandboxFork",
  method: "POST",
  path: "/sandboxes/{sandboxName}/fork",
  summary: "Make a new sandbox with the files of this one, as they are now or in a snapshot",
  tenancy: "workspace",
  scope: "sandboxes:create",
  role: "member",
  body: z.looseObject({
    targetName: fields.name.optional(),
    targetType: targetType.optional(),
    snapshotId: z.string().max(128).optional(),
    port: port.optional(),
    traffic: z.int().min(0).max(100).optional(),
    customDomain: z.string().max(253).optional(),
    prefix: z.string().max(63).optional(),
    memory: fields.memoryMb.optional().describe("MB; default: as much as the sandbox has."),
    target_name: fields.name.optional().describe("The same as targetName."),
    type: targetType.optional().describe("The same as targetType."),
  }),
  response: z.object({ name: z.string(), type: targetType, snapshotId: z.string() }),
  kind: "sandbox",
});

export const snapshotOperations = [snapshotDelete, sandboxFork];
