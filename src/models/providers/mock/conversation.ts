/** The little the development provider understands of a chat request. */
import { at, itemsOf } from "../../../lib/untrusted-json.ts";

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
  const last = messages.at(-1);
  const format = body.response_format;
  const type = at(format, "type");
  return {
    texts: messages.map(textOf),
    last: textOf(last),
    afterTool: at(last, "role") === "tool",
    tools: itemsOf(body.tools).map(toolOf),
    force: forced(body.tool_choice),
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

/** Text of a message: its content, as text or as parts with text. */
function textOf(message: unknown): string {
  const content = at(message, "content");
  if (typeof content === "string") return content;
  return itemsOf(content)
    .map((part) => at(part, "text"))
    .filter((text) => typeof text === "string")
    .join("");
}

function toolOf(tool: unknown): { name: string; schema: unknown } {
  const declared = at(tool, "function");
  return { name: String(at(declared, "name") ?? ""), schema: at(declared, "parameters") };
}

function forced(choice: unknown): string | null {
  const name = at(at(choice, "function"), "name");
  if (typeof name === "string") return name;
  return choice === "required" ? "any" : null;
}

const limitOf = (value: unknown): number | null => (typeof value === "number" && value > 0 ? Math.floor(value) : null);
