/** A request of the Responses API as a chat request. */
import { at, isRecord, itemsOf } from "../../../../lib/untrusted-json.ts";
import { type Json, renamed, unsupported } from "../front.ts";
import { mergeStates, openState, type ProviderState } from "../provider-state.ts";

export const TITLE = "Responses";

const refuse = (what: string) => unsupported(TITLE, what);

/** Nothing is stored here, so what another request left behind cannot be referred to. */
const STORED = ["previous_response_id", "conversation", "prompt"] as const;

const SAME = {
  temperature: "temperature",
  top_p: "top_p",
  parallel_tool_calls: "parallel_tool_calls",
  user: "user",
  max_output_tokens: "max_completion_tokens",
} as const;

export function toChat(request: Json): Json {
  for (const name of STORED) if (request[name] != null) throw refuse(`"${name}"`);
  if (request.background === true) throw refuse('"background"');
  if (request.top_logprobs || itemsOf(request.include).includes("message.output_text.logprobs"))
    throw refuse("Log probabilities");
  const messages = [...instructionsOf(request.instructions), ...messagesOf(request.input)];
  const { tools, choice } = toolsOf(request);
  const format = formatOf(at(request.text, "format"));
  const effort = at(request.reasoning, "effort");
  return {
    model: request.model,
    messages,
    ...renamed(request, SAME),
    ...(tools.length > 0 ? { tools } : {}),
    ...(choice === undefined ? {} : { tool_choice: choice }),
    ...(format === undefined ? {} : { response_format: format }),
    ...(typeof effort === "string" ? { reasoning_effort: effort } : {}),
    ...(request.stream === true ? { stream: true, stream_options: { include_usage: true } } : {}),
  };
}

const instructionsOf = (value: unknown): Json[] =>
  typeof value === "string" && value !== "" ? [{ role: "system", content: value }] : [];

function messagesOf(input: unknown): Json[] {
  if (typeof input === "string") return [{ role: "user", content: input }];
  const messages: Json[] = [];
  /** Thoughts, text and calls of one answer are items of their own there, and one message here. */
  let turn: Turn | null = null;
  const endTurn = (): void => {
    const message = turn && messageOf(turn);
    if (message) messages.push(message);
    turn = null;
  };
  for (const item of itemsOf(input)) {
    const type = at(item, "type") ?? "message";
    const isAnswer = type === "reasoning" || type === "function_call" || at(item, "role") === "assistant";
    if (isAnswer) {
      turn ??= { texts: [], calls: [], state: {} };
      addTo(turn, item, type);
      continue;
    }
    endTurn();
    if (type === "function_call_output") messages.push(outputOf(item));
    else if (type === "message") messages.push({ role: at(item, "role"), content: contentOf(at(item, "content")) });
    else throw refuse(`An input item of type "${String(type)}"`);
  }
  endTurn();
  return messages;
}

interface Turn {
  texts: string[];
  calls: Json[];
  state: ProviderState;
}

function addTo(turn: Turn, item: unknown, type: unknown): void {
  if (type === "reasoning") turn.state = mergeStates(turn.state, openState(at(item, "encrypted_content")));
  else if (type === "function_call") {
    const called = { name: at(item, "name"), arguments: at(item, "arguments") };
    turn.calls.push({ id: at(item, "call_id"), type: "function", function: called });
  } else {
    const content = at(item, "content");
    const parts = typeof content === "string" ? [{ text: content }] : itemsOf(content);
    for (const part of parts) turn.texts.push(String(at(part, "text") ?? at(part, "refusal") ?? ""));
  }
}

function messageOf({ texts, calls, state }: Turn): Json | null {
  const content = texts.join("");
  if (content === "" && calls.length === 0) return null;
  for (const call of calls) {
    const own = state.calls?.[String(call.id)];
    if (own) call.extra_content = own;
  }
  return {
    role: "assistant",
    content: content === "" ? null : content,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(state.message ? { extra_content: state.message } : {}),
  };
}

function outputOf(item: unknown): Json {
  const output = at(item, "output");
  const content = typeof output === "string" ? output : contentOf(output);
  return { role: "tool", tool_call_id: at(item, "call_id"), content };
}

function contentOf(content: unknown): string | Json[] {
  return typeof content === "string" ? content : itemsOf(content).map(partOf);
}

function partOf(part: unknown): Json {
  const type = at(part, "type");
  switch (type) {
    case "input_text":
    case "output_text":
    case "text":
      return { type: "text", text: at(part, "text") };
    case "refusal":
      return { type: "text", text: at(part, "refusal") };
    case "input_image": {
      const url = at(part, "image_url");
      if (typeof url !== "string") throw refuse("An image that is not inline and has no address (file_id)");
      const detail = at(part, "detail");
      return { type: "image_url", image_url: { url, ...(detail == null ? {} : { detail }) } };
    }
    case "input_file": {
      const data = at(part, "file_data");
      if (typeof data !== "string") throw refuse("A file that is not inline (file_id, file_url)");
      const filename = at(part, "filename");
      return { type: "file", file: { file_data: data, ...(filename == null ? {} : { filename }) } };
    }
    case "input_audio":
      return { type: "input_audio", input_audio: at(part, "input_audio") };
    default:
      throw refuse(`Content of type "${String(type)}"`);
  }
}

function toolsOf(request: Json): { tools: Json[]; choice: unknown } {
  const choice = request.tool_choice;
  let tools = itemsOf(request.tools).map(toolOf);
  if (choice == null || typeof choice === "string") return { tools, choice: choice ?? undefined };
  if (at(choice, "type") === "function")
    return { tools, choice: { type: "function", function: { name: at(choice, "name") } } };
  if (at(choice, "type") !== "allowed_tools") throw refuse(`A tool choice of type "${String(at(choice, "type"))}"`);
  const allowed = new Set(itemsOf(at(choice, "tools")).map((tool) => at(tool, "name")));
  tools = tools.filter((tool) => allowed.has(at(tool.function, "name")));
  return { tools, choice: at(choice, "mode") };
}

function toolOf(tool: unknown): Json {
  const type = at(tool, "type");
  if (type !== "function") throw refuse(`A tool of type "${String(type)}"`);
  const { name, description, parameters, strict } = tool as Json;
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

function formatOf(format: unknown): Json | undefined {
  if (!isRecord(format) || format.type === "text") return undefined;
  if (format.type !== "json_schema") return { type: format.type };
  const { type, ...schema } = format;
  return { type, json_schema: schema };
}
