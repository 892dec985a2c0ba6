// An agent of Mastra with a model, an MCP server and sandboxes of the platform.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { MCPClient } from "@mastra/mcp";
import { z } from "zod";
import { fetchAsAgent, LANGUAGES, mcpUrl, model, runCode, SYSTEM_PROMPT, serve } from "./berth.js";

const provider = createOpenAICompatible({ name: "berth", baseURL: model.url, fetch: fetchAsAgent });

serve(async ({ messages, thread }) => {
  const mcp = new MCPClient({
    id: crypto.randomUUID(),
    servers: { berth: { url: new URL(mcpUrl), fetch: fetchAsAgent } },
  });
  try {
    const code = createTool({
      id: "run_code",
      description: "Runs code in a sandbox and returns what it printed.",
      inputSchema: z.object({ language: z.enum(LANGUAGES), code: z.string() }),
      execute: (input) => runCode(input, thread),
    });
    const agent = new Agent({
      id: "agent",
      name: "agent",
      instructions: SYSTEM_PROMPT,
      model: provider(model.name),
      tools: { ...(await mcp.listTools()), run_code: code },
    });
    const { text } = await agent.generate(messages);
    return text;
  } finally {
    await mcp.disconnect();
  }
});
