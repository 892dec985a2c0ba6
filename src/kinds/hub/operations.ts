/** Catalogues: images for sandboxes, and MCP servers. */
import { z } from "zod";
import * as fields from "../../contract/fields.ts";
import { defineOperation } from "../../contract/operation.ts";

const definition = {
  name: z.string(),
  displayName: z.string(),
  description: z.string(),
  longDescription: z.string().optional(),
  image: z.string(),
  icon: z.string().optional(),
  url: z.string().optional(),
  coming_soon: z.boolean(),
  enterprise: z.boolean(),
  hidden: z.boolean(),
};

const common = { method: "GET", tenancy: "caller", role: "member" } as const;

export const sandboxHubList = defineOperation({
  ...common,
  id: "sandboxHubList",
  path: "/sandbox/hub",
  summary: "List the images that every sandbox can use",
  scope: "sandboxhub:list",
  response: z.array(
    z.looseObject({ ...definition, memory: z.int(), ports: z.array(fields.port), tags: z.string().optional() }),
  ),
});

export const mcpHubList = defineOperation({
  ...common,
  id: "mcpHubList",
  path: "/mcp/hub",
  summary: "List the MCP servers that come with the platform",
  scope: "mcphub:list",
  response: z.array(z.looseObject({ ...definition, integration: z.string().optional(), transport: z.string() })),
});

export const hubOperations = [sandboxHubList, mcpHubList];
