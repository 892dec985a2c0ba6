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

/** Copies that one request makes: what one server starts within the time that clients wait. */
export const FORK_COPIES_MAX = 100;

const targetType = z.enum(["sandbox", "application"]);
const port = z.int().min(1).max(65_535);

export const sandboxFork = defineOperation({
  id: "sandboxFork",
  method: "POST",
  path: "/sandboxes/{sandboxName}/fork",
  summary: "Make a new sandbox, or many, with the files of this one, as they are now or in a snapshot",
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
    withMemory: z
      .boolean()
      .optional()
      .describe(
        "Go on from the same instant, with the same processes and memory. Default: true for a snapshot that holds memory, else false.",
      ),
    copies: z
      .int()
      .min(1)
      .max(FORK_COPIES_MAX)
      .optional()
      .describe("Makes so many sandboxes, named TARGET-1, TARGET-2 and so on. Absent: one, named as the target."),
    target_name: fields.name.optional().describe("The same as targetName."),
    type: targetType.optional().describe("The same as targetType."),
  }),
  response: z.object({
    name: z.string(),
    type: targetType,
    snapshotId: z.string(),
    copies: z
      .array(
        z.object({
          name: z.string(),
          status: z.enum(["DEPLOYED", "DEPLOYING", "FAILED"]),
          error: z.string().optional().describe("Why this copy failed; the others are there."),
        }),
      )
      .optional()
      .describe("One entry for each copy, when `copies` was asked for."),
  }),
  kind: "sandbox",
});

export const snapshotRestore = defineOperation({
  id: "snapshotRestore",
  method: "POST",
  path: `${snapshot.itemPath}/restore`,
  summary: "Bring a sandbox back to a snapshot of it; what it has done since is gone",
  tenancy: "workspace",
  scope: "sandboxes:update",
  role: "member",
  body: z.looseObject({
    withMemory: z
      .boolean()
      .optional()
      .describe("Go on from the memory of the snapshot. Default: true for a snapshot that holds memory."),
  }),
  bodyOptional: true,
  response: z.object({ name: z.string(), snapshotId: z.string() }),
  kind: snapshot.name,
});

export const snapshotOperations = [snapshotDelete, snapshotRestore, sandboxFork];
