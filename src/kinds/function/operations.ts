import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";
import { PIN_MODES } from "../../contract/tools/tool-rules.ts";
import { TOOLS_MAX } from "../../contract/tools/tool-state.ts";
import { functionKind } from "./kind.ts";

const HASH_LENGTH = 43;
const TOOL_NAME_MAX_LENGTH = 128;

const hash = z.string().describe("SHA-256 of the definition, over all its members, in base64url.");

const toolList = z.object({
  pins: z.enum(PIN_MODES).nullable().describe("`spec.tools.pins`; null = nothing is withheld."),
  pinnedRevision: z.string().nullable().describe("The revision whose definitions its deployment has approved."),
  approved: z.array(z.object({ name: z.string(), hashes: z.array(hash) })),
  withheld: z.array(
    z.object({
      name: z.string(),
      hash,
      why: z.enum(["new", "changed"]),
      definition: z.string().describe("What the server lists, as JSON; the beginning of a long one."),
      since: z.string(),
    }),
  ),
});

const common = { tenancy: "workspace", kind: functionKind.name, response: toolList } as const;

export const functionTools = defineOperation({
  ...common,
  id: "functionTools",
  method: "GET",
  path: `${functionKind.itemPath}/tools`,
  summary: "The approved tools of an MCP server, and those that are withheld",
  scope: "functions:get",
  role: "member",
});

export const functionApproveTools = defineOperation({
  ...common,
  id: "functionApproveTools",
  method: "POST",
  path: `${functionKind.itemPath}/tools/approve`,
  summary: "Approve the definitions of tools that are withheld",
  scope: "functions:update",
  role: "admin",
  body: z.looseObject({
    tools: z
      .array(
        z.strictObject({
          name: z.string().min(1).max(TOOL_NAME_MAX_LENGTH),
          hash: z
            .string()
            .length(HASH_LENGTH)
            .describe("The definition that you have read; refused when another one is withheld now."),
        }),
      )
      .max(TOOLS_MAX),
  }),
});

export const functionOperations = [functionTools, functionApproveTools];
