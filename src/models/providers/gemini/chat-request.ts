import { at } from "../../../lib/untrusted-json.ts";
import {
  type ChatContent,
  type ChatMessage,
  type ChatPart,
  type ChatRequest,
  callArguments,
  contentText,
  outputLimitOf,
  parseDataUrl,
  refuse,
  refuseUntranslatable,
} from "../openai/chat-request.ts";

type Part = Record<string, unknown>;

interface Content {
  role: "user" | "model";
  parts: Part[];
}

export function toGenerateRequest(request: ChatRequest, model: string): Record<string, unknown> {
  refuseUntranslatable(request, "Gemini");
  const body: Record<string, unknown> = { contents: contentsOf(request.messages, SIGNING.test(model)) };
  const system = request.messages.flatMap((message) =>
    message.role === "system" || message.role === "developer" ? partsOf(message.content) : [],
  );
  if (system.length > 0) body.systemInstruction = { parts: system };
  if (request.tools?.length) {
    body.tools = [{ functionDeclarations: request.tools.map((tool) => declarationOf(tool.function)) }];
  }
  const choice = functionCalling(request);
  if (choice && request.tools?.length) body.toolConfig = { functionCallingConfig: choice };
  const config = generationConfig(request);
  if (Object.keys(config).length > 0) body.generationConfig = config;
  return body;
}

/** Models that refuse a call of theirs without the signature of the thought behind it. */
const SIGNING = /^(?:models\/)?gemini-(?:[3-9]|\d\d)/;
/** The API's own word for a call that comes from elsewhere: another model, or a client that drops what it does not know. */
const UNSIGNED = "skip_thought_signature_validator";

/** Calls are answered by name here, so the names of earlier calls are kept by their ids. */
function contentsOf(messages: ChatMessage[], signs: boolean): Content[] {
  const contents: Content[] = [];
  const names = new Map<string, string>();
  for (const message of messages) {
    if (message.role === "system" || message.role === "developer") continue;
    if (message.role === "assistant") {
      for (const call of message.tool_calls ?? []) names.set(call.id, call.function.name);
    }
    const role = message.role === "assistant" ? "model" : "user";
    const parts = messageParts(message, names, signs);
    if (parts.length === 0) continue;
    const last = contents.at(-1);
    if (last?.role === role) last.parts.push(...parts);
    else contents.push({ role, parts });
  }
  return contents;
}

function messageParts(
  message: Exclude<ChatMessage, { role: "system" | "developer" }>,
  names: Map<string, string>,
  signs: boolean,
): Part[] {
  if (message.role === "tool") {
    const name = names.get(message.tool_call_id) ?? message.tool_call_id;
    return [
      { functionResponse: { id: message.tool_call_id, name, response: toolResult(contentText(message.content)) } },
    ];
  }
  const parts = partsOf(message.content ?? "");
  if (message.role === "user") return parts;
  const calls = (message.tool_calls ?? []).map((call, index) => {
    const part: Part = { functionCall: { id: call.id, name: call.function.name, args: callArguments(call) } };
    // The signature of the thought behind a call must come back with the call; of several only the first has one.
    const signature = at(at(call.extra_content, "google"), "thought_signature");
    if (typeof signature === "string") return { ...part, thoughtSignature: signature };
    return signs && index === 0 ? { ...part, thoughtSignature: UNSIGNED } : part;
  });
  return [...parts, ...calls];
}

/** The result must be an object; anything else is put under one name. */
function toolResult(text: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed))
      return parsed as Record<string, unknown>;
    return { result: parsed };
  } catch {
    return { result: text };
  }
}

function partsOf(content: ChatContent): Part[] {
  if (typeof content === "string") return content === "" ? [] : [{ text: content }];
  return content.map(partOf).filter((part) => part.text !== "");
}

const AUDIO_TYPES: Record<string, string> = { wav: "audio/wav", mp3: "audio/mp3" };

function partOf(part: ChatPart): Part {
  if (part.type === "text") return { text: part.text };
  if (part.type === "refusal") return { text: part.refusal };
  if (part.type === "input_audio") {
    const { data, format } = part.input_audio;
    return { inlineData: { mimeType: AUDIO_TYPES[format] ?? `audio/${format}`, data } };
  }
  const url = part.type === "image_url" ? part.image_url.url : (part.file.file_data ?? "");
  const inline = parseDataUrl(url);
  if (inline) return { inlineData: { mimeType: inline.mediaType, data: inline.data } };
  if (part.type === "file") throw refuse("A file that is not inline (file_data as a data URL)", "Gemini");
  const mimeType = IMAGE_TYPES[/\.(\w{3,4})(?:$|[?#])/.exec(url)?.[1]?.toLowerCase() ?? ""];
  return { fileData: mimeType ? { mimeType, fileUri: url } : { fileUri: url } };
}

const IMAGE_TYPES: Record<string, string> = {
  gif: "image/gif",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  png: "image/png",
  webp: "image/webp",
};

function declarationOf(tool: { name: string; description?: string | null | undefined; parameters?: unknown }): Part {
  const out: Part = { name: tool.name };
  if (tool.description != null) out.description = tool.description;
  if (tool.parameters != null) out.parametersJsonSchema = tool.parameters;
  return out;
}

const MODES = { auto: "AUTO", none: "NONE", required: "ANY" } as const;

function functionCalling({ tool_choice: choice }: ChatRequest): Part | null {
  if (choice == null) return null;
  if (typeof choice === "object") return { mode: "ANY", allowedFunctionNames: [choice.function.name] };
  return { mode: MODES[choice] };
}

/** Tokens to think with, for the levels callers know. */
const THINKING_BUDGETS: Record<string, number> = {
  none: 0,
  minimal: 512,
  low: 1024,
  medium: 8192,
  high: 24_576,
  xhigh: 24_576,
  max: 24_576,
};

function generationConfig(request: ChatRequest): Part {
  const config: Part = {};
  const set = (name: string, value: unknown): void => {
    if (value != null) config[name] = value;
  };
  set("temperature", request.temperature);
  set("topP", request.top_p);
  set("topK", request.top_k);
  set("maxOutputTokens", outputLimitOf(request));
  set("stopSequences", typeof request.stop === "string" ? [request.stop] : request.stop);
  set("candidateCount", (request.n ?? 1) > 1 ? request.n : null);
  set("seed", request.seed);
  set("presencePenalty", request.presence_penalty);
  set("frequencyPenalty", request.frequency_penalty);
  const format = request.response_format;
  if (format && format.type !== "text") config.responseMimeType = "application/json";
  if (format?.type === "json_schema") set("responseJsonSchema", format.json_schema.schema);
  const budget = THINKING_BUDGETS[request.reasoning_effort ?? ""];
  if (budget !== undefined) config.thinkingConfig = { thinkingBudget: budget };
  return config;
}
