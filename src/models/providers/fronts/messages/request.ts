/** A request of Anthropic's Messages API as a chat request. */
import { at, isRecord, itemsOf } from "../../../../lib/untrusted-json.ts";
import { type Json, renamed, unsupported } from "../front.ts";
import { mergeStates, openState, type ProviderState } from "../provider-state.ts";

export const TITLE = "Messages";

const refuse = (what: string) => unsupported(TITLE, what);

const SAME = {
  max_tokens: "max_completion_tokens",
  temperature: "temperature",
  top_p: "top_p",
  stop_sequences: "stop",
} as const;

export function toChat(request: Json): Json {
  for (const name of ["mcp_servers", "container", "context_management"])
    if (request[name] != null) throw refuse(`"${name}"`);
  const system = textOf(request.system);
  const messages = itemsOf(request.messages).flatMap((message) =>
    at(message, "role") === "assistant" ? answerOf(at(message, "content")) : askedOf(at(message, "content")),
  );
  const tools = itemsOf(request.tools).map(toolOf);
  const format = at(request.output_config, "format");
  const effort = effortOf(request);
  const user = at(request.metadata, "user_id");
  return {
    model: request.model,
    messages: system === "" ? messages : [{ role: "system", content: system }, ...messages],
    ...renamed(request, SAME),
    ...(tools.length > 0 ? { tools } : {}),
    ...choiceOf(request.tool_choice),
    ...(isRecord(format)
      ? {
          response_format: {
            type: "json_schema",
            json_schema: { name: "answer", schema: format.schema, strict: true },
          },
        }
      : {}),
    ...(effort === null ? {} : { reasoning_effort: effort }),
    ...(typeof user === "string" ? { user } : {}),
    ...(request.stream === true ? { stream: true, stream_options: { include_usage: true } } : {}),
  };
}

/** Results of tools are messages of their own in chat, and stand before whatever else was said with them. */
function askedOf(content: unknown): Json[] {
  if (typeof content === "string") return [{ role: "user", content }];
  const results: Json[] = [];
  const parts: Json[] = [];
  for (const block of itemsOf(content)) {
    if (at(block, "type") !== "tool_result") {
      parts.push(partOf(block));
      continue;
    }
    const inner = at(block, "content");
    const said = textOf(inner);
    const text = at(block, "is_error") === true ? `Error: ${said}` : said;
    results.push({ role: "tool", tool_call_id: at(block, "tool_use_id"), content: text });
    // A tool's message in chat is text alone; what else it gave is shown right behind it.
    if (typeof inner !== "string")
      for (const one of itemsOf(inner)) if (at(one, "type") !== "text") parts.push(partOf(one));
  }
  return parts.length === 0 ? results : [...results, { role: "user", content: parts }];
}

function answerOf(content: unknown): Json[] {
  if (typeof content === "string") return [{ role: "assistant", content }];
  let text = "";
  let state: ProviderState = {};
  const calls: Json[] = [];
  for (const block of itemsOf(content)) {
    const type = at(block, "type");
    if (type === "text") text += String(at(block, "text") ?? "");
    else if (type === "tool_use") {
      const called = { name: at(block, "name"), arguments: JSON.stringify(at(block, "input") ?? {}) };
      calls.push({ id: at(block, "id"), type: "function", function: called });
    } else if (type === "thinking") state = mergeStates(state, openState(at(block, "signature")));
    else if (type === "redacted_thinking") state = mergeStates(state, openState(at(block, "data")));
    else throw refuse(`A block of type "${String(type)}"`);
  }
  if (text === "" && calls.length === 0) return [];
  for (const call of calls) {
    const own = state.calls?.[String(call.id)];
    if (own) call.extra_content = own;
  }
  return [
    {
      role: "assistant",
      content: text === "" ? null : text,
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
      ...(state.message ? { extra_content: state.message } : {}),
    },
  ];
}

const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : itemsOf(content)
        .map((block) => (at(block, "type") === "text" ? String(at(block, "text") ?? "") : ""))
        .filter((text) => text !== "")
        .join("\n\n");

function partOf(block: unknown): Json {
  const type = at(block, "type");
  const source = at(block, "source");
  if (type === "text") return { type: "text", text: at(block, "text") };
  if (type === "image") return { type: "image_url", image_url: { url: addressOf(source, "An image") } };
  if (type !== "document") throw refuse(`A block of type "${String(type)}"`);
  if (at(source, "type") === "text") return { type: "text", text: at(source, "data") };
  if (at(source, "type") !== "base64") throw refuse("A document that is not inline");
  const filename = at(block, "title") ?? "document";
  return { type: "file", file: { file_data: addressOf(source, "A document"), filename } };
}

function addressOf(source: unknown, what: string): string {
  if (at(source, "type") === "base64") return `data:${at(source, "media_type")};base64,${at(source, "data")}`;
  const url = at(source, "url");
  if (at(source, "type") === "url" && typeof url === "string") return url;
  throw refuse(`${what} that is neither inline nor an address`);
}

function toolOf(tool: unknown): Json {
  const type = at(tool, "type") ?? "custom";
  if (type !== "custom") throw refuse(`A tool of type "${String(type)}"`);
  const { name, description, input_schema: parameters, strict } = tool as Json;
  return {
    type: "function",
    function: {
      name,
      ...(description == null ? {} : { description }),
      ...(parameters == null ? {} : { parameters }),
      ...(strict == null ? {} : { strict }),
    },
  };
}

const CHOICES: Record<string, string> = { auto: "auto", any: "required", none: "none" };

function choiceOf(choice: unknown): Json {
  if (!isRecord(choice)) return {};
  const named = { type: "function", function: { name: choice.name } };
  const tool_choice = choice.type === "tool" ? named : CHOICES[String(choice.type)];
  return {
    ...(tool_choice === undefined ? {} : { tool_choice }),
    ...(choice.disable_parallel_tool_use === true ? { parallel_tool_calls: false } : {}),
  };
}

/** Tokens to think with, up to which an effort is meant. */
const BUDGETS: readonly (readonly [number, string])[] = [
  [4_096, "low"],
  [16_384, "medium"],
  [Number.POSITIVE_INFINITY, "high"],
];

function effortOf({ thinking, output_config: config }: Json): string | null {
  const effort = at(config, "effort");
  if (typeof effort === "string") return effort === "max" ? "xhigh" : effort;
  const budget = at(thinking, "budget_tokens");
  if (at(thinking, "type") !== "enabled" || typeof budget !== "number") return null;
  return BUDGETS.find(([most]) => budget <= most)?.[1] ?? null;
}
