import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";

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

export const sandboxOperations = [sandboxPause];
