import { z } from "zod";
import * as fields from "../../contract/fields.ts";
import { defineOperation } from "../../contract/operation.ts";
import { cpus } from "./kind.ts";

export const sandboxPause = defineOperation({
  id: "sandboxPause",
  method: "POST",
  path: "/sandboxes/{sandboxName}/pause",
  summary: "Put a sandbox to sleep now, with its processes; the next request to it wakes it",
  tenancy: "workspace",
  scope: "sandboxes:update",
  role: "member",
  response: z.object({ name: z.string(), state: z.enum(["RUNNING", "STANDBY"]) }),
  kind: "sandbox",
});

export const sandboxResize = defineOperation({
  id: "sandboxResize",
  method: "POST",
  path: "/sandboxes/{sandboxName}/resize",
  summary: "Change the memory and the processors of a running sandbox, without a restart",
  tenancy: "workspace",
  scope: "sandboxes:update",
  role: "member",
  body: z
    .strictObject({
      memory: fields.memoryMb.optional().describe("MB. Absent: as before."),
      cpus: cpus.optional().describe("Processors. Absent: as before, or by memory where they were never named."),
    })
    .refine(({ memory, cpus }) => memory !== undefined || cpus !== undefined, "needs memory or cpus"),
  response: z.object({
    name: z.string(),
    memory: z.int().describe("MB that hold from now on, and that usage is counted by."),
    cpus: z.number().describe("Processors that hold from now on."),
  }),
  kind: "sandbox",
});

export const sandboxOperations = [sandboxPause, sandboxResize];
