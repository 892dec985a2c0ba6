/** The little the development provider understands of a conversation, whatever dialect it came in. */
import { at, isRecord, itemsOf } from "../../../lib/untrusted-json.ts";

export interface Conversation {
  /** Text of every message, for counting. */
  texts: string[];
  /** Text of the last message: what is echoed. */
  last: string;
  /** True when the last message is a tool's result, which is never answered with another call. */
  afterTool: boolean;
  tools: { name: string; schema: unknown }[];
  /** A tool that must be called: its name, or any. */
  force: string | "any" | null;
  /** Structured output: a schema, or any object. */
  json: { schema: unknown } | null;
  maxTokens: number | null;
  stream: boolean;
}

export function fromChat(body: Record<string, unknown>): Conversation {
  const messages = itemsOf(body.messages);
  const format = body.response_format;
  const type = at(format, "type");
  return {
    ...conversationOf(messages, messages.at(-1), at(messages.at(-1), "role") === "tool"),
    tools: itemsOf(body.tools).map((tool) => namedTool(at(tool, "function"), "parameters")),
    force: forced(body.tool_choice, "required", at(at(body.tool_choice, "function"), "name")),
    json:
      type === "json_schema"
        ? { schema: at(at(format, "json_schema"), "schema") }
        : type === "json_object"
          ? { schema: null }
          : null,
    maxTokens: limitOf(body.max_completion_tokens ?? body.max_tokens),
    stream: body.stream === true,
  };
}

export function fromMessages(body: Record<string, unknown>): Conversation {
  const messages = itemsOf(body.messages);
  const last = messages.at(-1);
  const results = itemsOf(at(last, "content")).filter((block) => at(block, "type") === "tool_result");
  const format = at(body.output_config, "format");
  return {
    ...conversationOf([{ content: body.system }, ...messages], last, results.length > 0),
    tools: itemsOf(body.tools).map((tool) => namedTool(tool, "input_schema")),
    force: forced(at(body.tool_choice, "type"), "any", at(body.tool_choice, "name")),
    json: isRecord(format) ? { schema: format.schema } : null,
    maxTokens: limitOf(body.max_tokens),
    stream: body.stream === true,
  };
}

export function fromResponses(body: Record<string, unknown>): Conversation {
  const items = typeof body.input === "string" ? [{ content: body.input }] : itemsOf(body.input);
  const last = items.at(-1);
  const format = at(body.text, "format");
  const type = at(format, "type");
  return {
    ...conversationOf([{ content: body.instructions }, ...items], last, at(last, "type") === "function_call_output"),
    tools: itemsOf(body.tools).map((tool) => namedTool(tool, "parameters")),
    force: forced(body.tool_choice, "required", at(body.tool_choice, "name")),
    json: type === "json_schema" ? { schema: at(format, "schema") } : type === "json_object" ? { schema: null } : null,
    maxTokens: limitOf(body.max_output_tokens),
    stream: body.stream === true,
  };
}

function conversationOf(messages: unknown[], last: unknown, afterTool: boolean) {
  return { texts: messages.map(textOf), last: textOf(last), afterTool };
}

/** Text of a message: its content, or the output of a tool, as text or as parts with text. */
function textOf(message: unknown): string {
  const content = at(message, "content") ?? at(message, "output");
  if (typeof content === "string") return content;
  return itemsOf(content)
    .map((part) => at(part, "text") ?? (at(part, "type") === "tool_result" ? textOf(part) : ""))
    .filter((text) => typeof text === "string")
    .join("");
}

const namedTool = (tool: unknown, schema: string): { name: string; schema: unknown } => ({
  name: String(at(tool, "name") ?? ""),
  schema: at(tool, schema),
});

function forced(choice: unknown, any: string, name: unknown): string | null {
  if (typeof name === "string") return name;
  return choice === any ? "any" : null;
}

const limitOf = (value: unknown): number | null => (typeof value === "number" && value > 0 ? Math.floor(value) : null);
