/** Changes of resources as they happen. */
import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";

export const watchChanges = defineOperation({
  id: "watchChanges",
  method: "GET",
  path: "/watch",
  summary: "Hear of changes of resources as they happen, as server-sent events",
  tenancy: "workspace",
  scope: "workspaces:get",
  role: "member",
  kind: "watch",
  query: z.object({
    kinds: z
      .string()
      .max(1024)
      .optional()
      .describe(
        "Kinds, separated by commas, singular or plural; every kind that the credentials may list when absent.",
      ),
  }),
  events: true,
  response: z.union([
    z
      .object({
        kind: z.string(),
        name: z.string(),
        uid: z.string(),
        parent: z.string().optional().describe("uid of the resource that contains this one."),
        version: z.int().optional().describe("The ETag is made of it; absent when the resource is gone."),
        deleted: z.literal(true).optional(),
      })
      .describe("Event `change`."),
    z.object({}).describe("Events `ready` (from here on nothing is missed) and `reset` (read every list again)."),
    z.object({ message: z.string() }).describe("Event `end`: why the server ends the stream."),
  ]),
});

export const watchOperations = [watchChanges];
