/**
 * A server with everything that the official conformance suite asks for by name, made with the official kit. Deployed as
 * code and bridged from standard streams, it shows whether the way through the platform keeps the protocol intact.
 */
import {
  type CallToolResult,
  completable,
  createRequestStateCodec,
  fromJsonSchema,
  inputRequired,
  type McpRequestContext,
  McpServer,
  ResourceTemplate,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { ASKING_TOOLS, type AskingTool, CONTEXT_QUESTION } from "./everything-questions.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

type Content = CallToolResult["content"][number];
type Run = (args: Record<string, unknown>, context: ServerContext) => Content[] | Promise<Content[]>;

const text = (value: string): Content => ({ type: "text", text: value });
const image: Content = { type: "image", data: PNG, mimeType: "image/png" };
const resource = (uri: string, mimeType: string, value: string): Content => ({
  type: "resource",
  resource: { uri, mimeType, text: value },
});
const moment = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50));

const PLAIN_TOOLS: Record<string, Run> = {
  test_simple_text: () => [text("This is a simple text response for testing.")],
  test_image_content: () => [image],
  test_audio_content: () => [{ type: "audio", data: WAV, mimeType: "audio/wav" }],
  test_embedded_resource: () => [
    resource("test://embedded-resource", "text/plain", "This is an embedded resource content."),
  ],
  test_multiple_content_types: () => [
    text("Multiple content types test:"),
    image,
    resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
  ],
  async test_tool_with_logging(_args, { mcpReq }) {
    for (const said of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await mcpReq.log("info", said);
      await moment();
    }
    return [text("Logged.")];
  },
  async test_logging_tool(_args, { mcpReq }) {
    await mcpReq.log("info", "Only for those who asked for it.");
    return [text("Logged.")];
  },
  async test_tool_with_progress(_args, { mcpReq }) {
    const { progressToken } = mcpReq._meta ?? {};
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
      await moment();
    }
    return [text("Done.")];
  },
  test_error_handling: () => {
    throw new Error("This tool intentionally returns an error for testing");
  },
  async test_reconnection(_args, { http }) {
    http?.closeSSE?.();
    await moment();
    return [text("Finished while nobody listened.")];
  },
  async test_streaming_elicitation(_args, { mcpReq }) {
    await mcpReq.notify({
      method: "notifications/progress",
      params: { progressToken: mcpReq._meta?.progressToken ?? 0, progress: 1 },
    });
    return [text("Streamed.")];
  },
};

const SCHEMA_2020 = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  ...{ then: { required: ["phone"] } },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

/** An annotation that the type of schemas does not know. */
const HEADER_SCHEMA = {
  type: "object" as const,
  properties: { region: { type: "string" as const, ...{ "x-mcp-header": "Region" } } },
  required: ["region"],
};

export interface Changes {
  toolsChanged(): unknown;
  promptsChanged(): unknown;
}

const states = createRequestStateCodec({ key: "a key that only this test server has, of some length" });

/** `changes` tells everybody; without it the server tells the one it is connected to. */
export function everythingServer({ era }: McpRequestContext, changes?: Changes): McpServer {
  const server = new McpServer(
    { name: "everything", version: "1.0.0" },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: era === "legacy" },
        logging: {},
        completions: {},
      },
      requestState: { verify: states.verify },
    },
  );
  for (const [name, run] of Object.entries(PLAIN_TOOLS))
    server.registerTool(name, { description: `${name} of the suite` }, async (context) => ({
      content: await run({}, context),
    }));
  for (const [name, tool] of Object.entries(ASKING_TOOLS)) registerAsking(server, name, tool, era);
  const told: Changes = changes ?? {
    toolsChanged: () => server.sendToolListChanged(),
    promptsChanged: () => server.sendPromptListChanged(),
  };
  for (const [name, tell] of [
    ["test_trigger_tool_change", () => told.toolsChanged()],
    ["test_trigger_prompt_change", () => told.promptsChanged()],
  ] as const)
    server.registerTool(name, { description: "Tells of a change" }, async () => {
      await tell();
      return { content: [text("Told.")] };
    });
  server.registerTool(
    "json_schema_2020_12_tool",
    { description: "Has a schema with everything", inputSchema: fromJsonSchema(SCHEMA_2020) },
    () => ({ content: [text("Fine.")] }),
  );
  server.registerTool(
    "test_headers",
    {
      description: "Has an argument that is a header, too",
      inputSchema: fromJsonSchema(HEADER_SCHEMA),
    },
    (args) => ({ content: [text(JSON.stringify(args))] }),
  );
  registerPrompts(server, era);
  registerResources(server);
  if (era === "legacy") {
    server.server.setRequestHandler("resources/subscribe", () => ({}));
    server.server.setRequestHandler("resources/unsubscribe", () => ({}));
  }
  return server;
}

/** The newer protocol hands the question back and is called again; before, the server asked while it worked. */
function registerAsking(server: McpServer, name: string, tool: AskingTool, era: McpRequestContext["era"]): void {
  const { inputSchema } = tool;
  server.registerTool(
    name,
    { description: `${name} of the suite`, inputSchema: inputSchema ?? z.object({}) },
    async (args, context) => {
      if (tool.era !== era) return { content: [text("Not in this era.")], isError: true };
      if (tool.era === "legacy") return { content: [text(await tool.ask(args as Record<string, string>, context))] };
      const next = tool.round(context, context.mcpReq.requestState<{ round: number }>()?.round ?? 0);
      if (typeof next === "string") return { content: [text(next)] };
      const { round, inputRequests } = next;
      return inputRequired({
        inputRequests,
        ...(round === undefined ? {} : { requestState: await states.mint({ round }) }),
      });
    },
  );
}

function registerPrompts(server: McpServer, era: McpRequestContext["era"]): void {
  const says = (...contents: Content[]) => ({
    messages: contents.map((content) => ({ role: "user" as const, content })),
  });
  server.registerPrompt("test_simple_prompt", { description: "Simple" }, () =>
    says(text("This is a simple prompt for testing.")),
  );
  server.registerPrompt(
    "test_prompt_with_arguments",
    {
      description: "With arguments",
      argsSchema: z.object({ arg1: completable(z.string(), (given) => [`${given}is`]), arg2: z.string() }),
    },
    ({ arg1, arg2 }) => says(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  );
  server.registerPrompt(
    "test_prompt_with_embedded_resource",
    { description: "With a resource", argsSchema: z.object({ resourceUri: z.string() }) },
    ({ resourceUri }) =>
      says(
        resource(resourceUri, "text/plain", "Embedded resource content for testing."),
        text("Please process the embedded resource above."),
      ),
  );
  server.registerPrompt("test_prompt_with_image", { description: "With an image" }, () =>
    says(image, text("Please analyze the image above.")),
  );
  if (era === "modern")
    server.registerPrompt("test_input_required_result_prompt", { description: "Asks" }, ({ mcpReq }) => {
      const given = mcpReq.inputResponses?.user_context as { content?: { context?: string } } | undefined;
      if (given?.content?.context === undefined)
        return inputRequired({ inputRequests: { user_context: CONTEXT_QUESTION } });
      return says(text(`About ${given.content.context}.`));
    });
}

function registerResources(server: McpServer): void {
  const plain = { mimeType: "text/plain" };
  const fixed = (name: string, uri: string, mimeType: string, content: { text: string } | { blob: string }): void => {
    server.registerResource(name, uri, { description: name, mimeType }, () => ({
      contents: [{ uri, mimeType, ...content }],
    }));
  };
  fixed("text", "test://static-text", plain.mimeType, { text: "This is the content of the static text resource." });
  fixed("binary", "test://static-binary", "image/png", { blob: PNG });
  fixed("watched", "test://watched-resource", plain.mimeType, { text: "Watched." });
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  server.registerResource("template", template, { description: "template" }, (uri, { id }) => ({
    contents: [
      {
        uri: uri.href,
        mimeType: "application/json",
        text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
      },
    ],
  }));
}
