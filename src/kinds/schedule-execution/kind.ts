import { z } from "zod";
import { defineKind } from "../../contract/kind.ts";
import { sandbox } from "../sandbox/kind.ts";

/** Written when a schedule fires; read-only for clients. */
export const scheduleExecution = defineKind({
  name: "scheduleexecution",
  plural: "scheduleexecutions",
  summary: "One firing of a schedule",
  within: sandbox,
  path: "/schedule-executions",
  param: "executionId",
  verbs: ["list"],
  flat: { name: "id" },
  spec: z.object({
    scheduleId: z.string(),
    executedAt: z.string(),
    statusCode: z.int().describe("Of the request that started the process; 0 = the sandbox could not be reached."),
    processName: z.string(),
    timeout: z.int(),
    error: z.string().optional(),
  }),
  paged: true,
  limits: { limitDefault: 20, limitMax: 100 },
  scopeWord: "sandboxes",
  scopes: { list: "sandboxes:get" },
});
