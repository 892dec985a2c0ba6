// An agent of LangChain, which is a graph of LangGraph, with a model, an MCP server and sandboxes of the platform.
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent, tool } from "langchain";
import { z } from "zod";
import { accessToken, fetchAsAgent, LANGUAGES, mcpUrl, model, runCode, SYSTEM_PROMPT, serve } from "./berth.js";

const llm = new ChatOpenAI({
  model: model.name,
  apiKey: "set by fetchAsAgent",
  configuration: { baseURL: model.url, fetch: fetchAsAgent },
});

serve(async ({ messages, thread }) => {
  const headers = { authorization: `Bearer ${await accessToken()}` };
  const mcp = new MultiServerMCPClient({ mcpServers: { berth: { transport: "http", url: mcpUrl, headers } } });
  try {
    const code = tool((input) => runCode(input, thread), {
      name: "run_code",
      description: "Runs code in a sandbox and returns what it printed.",
      schema: z.object({ language: z.enum(LANGUAGES), code: z.string() }),
    });
    const agent = createAgent({ model: llm, tools: [code, ...(await mcp.getTools())], systemPrompt: SYSTEM_PROMPT });
    const end = await agent.invoke({ messages });
    return end.messages.at(-1)?.text ?? "";
  } finally {
    await mcp.close();
  }
});
