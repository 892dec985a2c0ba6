import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";

export const changelogGet = defineOperation({
  id: "changelogGet",
  method: "GET",
  path: "/changelog",
  summary: "Read what has changed in the platform: one entry for each release, newest first",
  tenancy: "public",
  scope: null,
  role: "member",
  response: z.object({
    entries: z.array(z.object({ title: z.string(), content: z.string(), date: z.string() })),
  }),
});

export const changelogOperations = [changelogGet];
