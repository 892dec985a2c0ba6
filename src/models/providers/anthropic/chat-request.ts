import { at } from "../../../lib/untrusted-json.ts";
import {
  type ChatContent,
  type ChatMessage,
  type ChatPart,
  type ChatRequest,
  type ChatTool,
  callArguments,
  outputLimitOf,
  parseDataUrl,
  refuse,
  refuseUntranslatable,
} from "../openai/chat-request.ts";

/** `max_tokens` is mandatory in this API. Default for callers that set none: what token caps reserve for them. */
const MAX_TOKENS_DEFAULT = 16_384;
/** Limit of the smallest older models. */
const MAX_TOKENS_OLDER = 4096;
const OLDER = /^claude-(?:[23]|instant)/;

const JSON_ONLY = "Answer with one JSON object and nothing else: no prose before or after it, no code fence.";

type Block = Record<string, unknown>;

interface Turn {
  role: "user" | "assistant";
  content: Block[];
}

export function toMessagesRequest(request: ChatRequest, model: string): Record<string, unknown> {
  if ((request.n ?? 1) > 1) throw refuse("More than one choice (n)", "Anthropic");
  refuseUntranslatable(request, "Anthropic");
  const body: Record<string, unknown> = {
    model,
    max_tokens: outputLimitOf(request) ?? defaultLimit(request, model),
    messages: turnsOf(request.messages),
  };
  const system = systemBlocks(request);
  if (system.length > 0) body.system = system;
  // Temperatures run to 2 there and to 1 here; above 1 both mean "as varied as it gets".
  if (request.temperature != null) body.temperature = Math.min(request.temperature, 1);
  // Newer models refuse the two together.
  else if (request.top_p != null) body.top_p = request.top_p;
  if (request.stop != null) body.stop_sequences = typeof request.stop === "string" ? [request.stop] : request.stop;
  if (request.stream) body.stream = true;
  if (request.user != null) body.metadata = { user_id: request.user };
  if (request.tools?.length) body.tools = request.tools.map(toolOf);
  const choice = toolChoice(request);
  if (choice && request.tools?.length) body.tool_choice = choice;
  const output = outputConfig(request, model);
  if (output) body.output_config = output;
  // Members of this API itself, sent by a caller who knows where the request ends up.
  for (const own of ["thinking", "top_k", "service_tier"]) if (request[own] != null) body[own] = request[own];
  return body;
}

/** `max_tokens` includes the thinking budget, so the default is added to it. */
function defaultLimit({ thinking }: ChatRequest, model: string): number {
  const budget = at(thinking, "budget_tokens");
  return (OLDER.test(model) ? MAX_TOKENS_OLDER : MAX_TOKENS_DEFAULT) + (typeof budget === "number" ? budget : 0);
}

function systemBlocks(request: ChatRequest): Block[] {
  const blocks: Block[] = [];
  for (const message of request.messages) {
    if (message.role === "system" || message.role === "developer") blocks.push(...textBlocks(message.content));
  }
  if (request.response_format?.type === "json_object") blocks.push({ type: "text", text: JSON_ONLY });
  return blocks;
}

/** Turns must alternate: neighbours of one role become one turn, tool results belong to the user's. */
function turnsOf(messages: ChatMessage[]): Turn[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    if (message.role === "system" || message.role === "developer") continue;
    const role = message.role === "assistant" ? "assistant" : "user";
    const content = blocksOf(message);
    if (content.length === 0) continue;
    const last = turns.at(-1);
    if (last?.role === role) last.content.push(...content);
    else turns.push({ role, content });
  }
  return turns;
}

function blocksOf(message: Exclude<ChatMessage, { role: "system" | "developer" }>): Block[] {
  if (message.role === "tool") {
    const content = typeof message.content === "string" ? message.content : message.content.map(blockOf);
    return [{ type: "tool_result", tool_use_id: message.tool_call_id, content }];
  }
  if (message.role === "user") return partBlocks(message.content);
  const calls = (message.tool_calls ?? []).map((call) => ({
    type: "tool_use",
    id: call.id,
    name: call.function.name,
    input: callArguments(call),
  }));
  return [...thinkingBlocks(message.extra_content), ...partBlocks(message.content ?? ""), ...calls];
}

/** Signed thoughts travel in `extra_content`, because a turn that calls tools must be given back with them. */
function thinkingBlocks(extra: Record<string, unknown> | null | undefined): Block[] {
  const own = extra?.anthropic;
  const blocks = typeof own === "object" && own !== null && "thinking_blocks" in own ? own.thinking_blocks : null;
  return Array.isArray(blocks) ? (blocks as Block[]) : [];
}

/** Empty text is refused by the API, and means nothing. */
const partBlocks = (content: ChatContent): Block[] =>
  typeof content === "string" ? textBlocks(content) : content.map(blockOf).filter((block) => block.text !== "");

const textBlocks = (content: ChatContent): Block[] => {
  if (typeof content !== "string") return content.filter((part) => part.type === "text").map(blockOf);
  return content === "" ? [] : [{ type: "text", text: content }];
};

function blockOf(part: ChatPart): Block {
  const cache = part.cache_control == null ? {} : { cache_control: part.cache_control };
  if (part.type === "text") return { type: "text", text: part.text, ...cache };
  if (part.type === "refusal") return { type: "text", text: part.refusal };
  if (part.type === "input_audio") throw refuse("Audio input", "Anthropic");
  if (part.type === "image_url") {
    const inline = parseDataUrl(part.image_url.url);
    const source = inline
      ? { type: "base64", media_type: inline.mediaType, data: inline.data }
      : { type: "url", url: part.image_url.url };
    return { type: "image", source, ...cache };
  }
  const inline = parseDataUrl(part.file.file_data ?? "");
  if (!inline) throw refuse("A file that is not inline (file_data as a data URL)", "Anthropic");
  const title = part.file.filename === undefined ? {} : { title: part.file.filename };
  const source = { type: "base64", media_type: inline.mediaType, data: inline.data };
  return { type: "document", source, ...title, ...cache };
}

function toolOf(tool: ChatTool): Block {
  const { name, description, parameters, strict } = tool.function;
  const out: Block = { name, input_schema: parameters ?? { type: "object", properties: {} } };
  if (description != null) out.description = description;
  if (strict != null) out.strict = strict;
  if (tool.cache_control != null) out.cache_control = tool.cache_control;
  return out;
}

const CHOICES = { auto: "auto", none: "none", required: "any" } as const;

function toolChoice(request: ChatRequest): Block | null {
  const { tool_choice: choice, parallel_tool_calls: parallel } = request;
  if (choice == null && parallel !== false) return null;
  const out: Block =
    choice != null && typeof choice === "object"
      ? { type: "tool", name: choice.function.name }
      : { type: CHOICES[choice ?? "auto"] };
  if (parallel === false && out.type !== "none") out.disable_parallel_tool_use = true;
  return out;
}

const EFFORTS: Record<string, string> = {
  minimal: "low",
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "xhigh",
  max: "max",
};

/** Models that refuse a request that names an effort; to those it is only a hint, and left out. */
const WITHOUT_EFFORT = /^claude-(?:[23]|instant|(?:opus|sonnet)-4(?:-[01])?(?:-\d{8})?$|(?:sonnet|haiku)-4-5)/;

function outputConfig(request: ChatRequest, model: string): Block | null {
  const out: Block = {};
  const effort = EFFORTS[request.reasoning_effort ?? ""];
  if (effort && !WITHOUT_EFFORT.test(model)) out.effort = effort;
  const format = request.response_format;
  if (format?.type === "json_schema" && format.json_schema.schema) {
    out.format = { type: "json_schema", schema: format.json_schema.schema };
  }
  return Object.keys(out).length > 0 ? out : null;
}
