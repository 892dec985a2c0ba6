import { z } from "zod";
import * as fields from "../../contract/fields.ts";
import { defineKind } from "../../contract/kind.ts";
import type { Reference } from "../../contract/references.ts";
import { servers, tools } from "../../contract/tools/tool-rules.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";
import type { DeployState } from "../workload/deploy-state.ts";
import * as workload from "../workload/spec.ts";

const SERVERS: Reference = { path: "spec.servers[].name", kind: "function" };

// The suffix avoids the reserved word `function`.
export type FunctionResource = ResourceOf<typeof functionKind>;

export const functionKind = defineKind({
  name: "function",
  plural: "functions",
  placed: {},
  summary: "An MCP server",
  param: "functionName",
  verbs: ["list", "get", "create", "update", "delete"],
  spec: z.looseObject({
    ...workload.common,
    network: workload.network.optional(),
    vpc: workload.vpc.optional(),
    public: z.boolean().optional().describe("Callable without credentials; default false."),
    urls: workload.urls.optional(),
    type: z.string().max(32).optional().describe("`mcp`: there is no other."),
    integrationConnections: fields.names.optional(),
    tools: tools.optional(),
    servers: servers.optional(),
    volumes: fields.volumeAttachments.optional(),
    drives: fields.driveAttachments.optional(),
    runtime: z
      .looseObject({
        ...workload.runtime,
        ...workload.scale,
        ports: fields.ports.optional(),
        transport: z
          .string()
          .max(32)
          .optional()
          .describe("http-stream, websocket, or stdio, which is bridged; absent = found out by looking at the code."),
        type: z.string().max(32).optional(),
      })
      .optional(),
  }),
  secrets: workload.secrets,
  secretsShown: "on_request",
  secretsWriteOnly: workload.secretsWriteOnly,
  references: [SERVERS, workload.policies, workload.connections, workload.volumes, workload.drives],
  recorded: z.custom<DeployState>(),
  revisions: true,
  query: workload.upload,
  initialStatus: "DEPLOYING",
  paged: true,
  meters: ["mcp_server_compute_runtime_gbs", "mcp_server_image_storage_gbs"],
});
