/** /mcp: the tools of a sandbox for agents, over streamable HTTP. */

import { answerMcp, type McpServer } from "../../lib/mcp/server.ts";
import type { Daemon } from "../daemon-context.ts";
import { toApiError } from "../http/api-error.ts";
import { type Call, readBody } from "../http/call.ts";
import { sendJson } from "../http/send.ts";
import { providerOf } from "../search/codegen.ts";
import { VERSION } from "../version.ts";
import type { SandboxTool } from "./tool.ts";
import { CODEGEN_TOOLS } from "./tools-codegen.ts";
import { FILE_TOOLS } from "./tools-files.ts";
import { PROCESS_TOOLS } from "./tools-process.ts";

/** Runs the tool with the rights of `filesUser`, when that is set. */
const asUser = (tool: SandboxTool): SandboxTool => ({
  ...tool,
  run: async (daemon, args, signal) => {
    const user = daemon.environment.filesUser;
    const files = user && (await daemon.userFiles?.());
    return files ? files.callTool(user, tool.name, args) : tool.run(daemon, args, signal);
  },
});

const TOOLS = [...PROCESS_TOOLS, ...[...FILE_TOOLS, ...CODEGEN_TOOLS].map(asUser)];

const SERVER: McpServer<Daemon> = {
  info: { name: "Sandbox API Server", version: VERSION },
  tools(daemon) {
    const hasProvider = providerOf(daemon.environment) !== undefined;
    return TOOLS.filter((tool) => hasProvider || !tool.needsProvider);
  },
  explain: (error) => toApiError(error).message,
};

export async function postMcp(call: Call): Promise<void> {
  const asked = { header: (name: string) => headerOf(call, name), body: (await readBody(call)).toString("utf8") };
  const { status, body } = await answerMcp(SERVER, asked, call.daemon, call.signal);
  if (body === null) call.res.writeHead(status).end();
  else sendJson(call.res, status, body);
}

const headerOf = ({ req }: Call, name: string): string | undefined => {
  const value = req.headers[name];
  return Array.isArray(value) ? value[0] : value;
};
