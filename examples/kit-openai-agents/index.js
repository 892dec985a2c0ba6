// An agent of the OpenAI Agents SDK with a model, an MCP server and sandboxes of the platform.
import {
  Agent,
  assistant,
  MCPServerStreamableHttp,
  OpenAIChatCompletionsModel,
  run,
  setTracingDisabled,
  tool,
  user,
} from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { fetchAsAgent, LANGUAGES, mcpUrl, model, runCode, SYSTEM_PROMPT, serve } from "./berth.js";

// Traces would be sent to OpenAI.
setTracingDisabled(true);
const client = new OpenAI({ baseURL: model.url, apiKey: "set by fetchAsAgent", fetch: fetchAsAgent });

serve(async ({ messages, thread }) => {
  const mcp = new MCPServerStreamableHttp({ name: "berth", url: mcpUrl, fetch: fetchAsAgent });
  await mcp.connect();
  try {
    const agent = new Agent({
      name: "agent",
      instructions: SYSTEM_PROMPT,
      model: new OpenAIChatCompletionsModel(client, model.name),
      mcpServers: [mcp],
      tools: [
        tool({
          name: "run_code",
          description: "Runs code in a sandbox and returns what it printed.",
          parameters: z.object({ language: z.enum(LANGUAGES), code: z.string() }),
          execute: (input) => runCode(input, thread),
        }),
      ],
    });
    const history = messages.map(({ role, content }) => (role === "assistant" ? assistant(content) : user(content)));
    const { finalOutput } = await run(agent, history);
    return finalOutput ?? "";
  } finally {
    await mcp.close();
  }
});
