// An agent of the Vercel AI SDK with a model, an MCP server and sandboxes of the platform.
import { createMCPClient } from "@ai-sdk/mcp";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, tool } from "ai";
import { z } from "zod";
import { fetchAsAgent, LANGUAGES, mcpUrl, model, runCode, SYSTEM_PROMPT, serve } from "./berth.js";

/** Answers of the model in one turn, tool calls included. */
const STEPS_MAX = 10;
const provider = createOpenAICompatible({ name: "berth", baseURL: model.url, fetch: fetchAsAgent });

serve(async ({ messages, thread }) => {
  const mcp = await createMCPClient({ transport: { type: "http", url: mcpUrl, fetch: fetchAsAgent } });
  try {
    const { text } = await generateText({
      model: provider(model.name),
      system: SYSTEM_PROMPT,
      messages,
      tools: {
        ...(await mcp.tools()),
        run_code: tool({
          description: "Runs code in a sandbox and returns what it printed.",
          inputSchema: z.object({ language: z.enum(LANGUAGES), code: z.string() }),
          execute: (input) => runCode(input, thread),
        }),
      },
      stopWhen: isStepCount(STEPS_MAX),
    });
    return text;
  } finally {
    await mcp.close();
  }
});
