/** A tool of the sandbox's own MCP server. */

import type { Tool } from "../../lib/mcp/tool.ts";
import type { Daemon } from "../daemon-context.ts";

export interface SandboxTool extends Tool<Daemon> {
  /** Only offered when a code model is configured. */
  needsProvider?: true;
}
