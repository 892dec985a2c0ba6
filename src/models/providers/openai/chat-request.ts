/**
 * The chat request as callers write it, checked only where a translation has to read it. Calls that pass to a
 * provider of the same tongue are never parsed.
 */
import { z } from "zod";
import { GatewayError } from "../../../contract/gateway-errors.ts";

const textPart = z.looseObject({ type: z.literal("text"), text: z.string() });
const imagePart = z.looseObject({ type: z.literal("image_url"), image_url: z.looseObject({ url: z.string() }) });
const filePart = z.looseObject({
  type: z.literal("file"),
  file: z.looseObject({ file_data: z.string().optional(), filename: z.string().optional() }),
});
const audioPart = z.looseObject({
  type: z.literal("input_audio"),
  input_audio: z.looseObject({ data: z.string(), format: z.string() }),
});
const refusalPart = z.looseObject({ type: z.literal("refusal"), refusal: z.string() });

const part = z.discriminatedUnion("type", [textPart, imagePart, filePart, audioPart, refusalPart]);
const content = z.union([z.string(), z.array(part)]);

const toolCall = z.looseObject({
  id: z.string(),
  type: z.literal("function").default("function"),
  function: z.looseObject({ name: z.string(), arguments: z.string().default("{}") }),
  /** Provider state of a call, such as the signature of the thought behind it. */
  extra_content: z.looseObject({}).nullish(),
});

const message = z.discriminatedUnion("role", [
  z.looseObject({ role: z.literal("system"), content }),
  z.looseObject({ role: z.literal("developer"), content }),
  z.looseObject({ role: z.literal("user"), content, name: z.string().optional() }),
  z.looseObject({
    role: z.literal("assistant"),
    content: content.nullish(),
    tool_calls: z.array(toolCall).nullish(),
    extra_content: z.looseObject({}).nullish(),
  }),
  z.looseObject({ role: z.literal("tool"), content, tool_call_id: z.string() }),
]);

const tool = z.looseObject({
  type: z.literal("function"),
  function: z.looseObject({
    name: z.string(),
    description: z.string().nullish(),
    parameters: z.looseObject({}).nullish(),
    strict: z.boolean().nullish(),
  }),
});

const chatRequest = z.looseObject({
  messages: z.array(message).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  max_tokens: z.int().nullish(),
  max_completion_tokens: z.int().nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  n: z.int().nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  tools: z.array(tool).nullish(),
  tool_choice: z
    .union([
      z.enum(["auto", "none", "required"]),
      z.looseObject({ type: z.literal("function"), function: z.looseObject({ name: z.string() }) }),
    ])
    .nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  response_format: z
    .discriminatedUnion("type", [
      z.looseObject({ type: z.literal("text") }),
      z.looseObject({ type: z.literal("json_object") }),
      z.looseObject({
        type: z.literal("json_schema"),
        json_schema: z.looseObject({ schema: z.looseObject({}).nullish() }),
      }),
    ])
    .nullish(),
  reasoning_effort: z.string().nullish(),
  seed: z.number().nullish(),
  presence_penalty: z.number().nullish(),
  frequency_penalty: z.number().nullish(),
  user: z.string().nullish(),
  logprobs: z.boolean().nullish(),
  functions: z.array(z.unknown()).nullish(),
  modalities: z.array(z.string()).nullish(),
});

export type ChatRequest = z.infer<typeof chatRequest>;
export type ChatMessage = ChatRequest["messages"][number];
export type ChatContent = z.infer<typeof content>;
export type ChatPart = z.infer<typeof part>;
export type ChatTool = z.infer<typeof tool>;
export type ChatToolCall = z.infer<typeof toolCall>;

export function parseChatRequest(body: Buffer): ChatRequest {
  let json: unknown;
  try {
    json = JSON.parse(body.toString("utf8"));
  } catch (cause) {
    throw new GatewayError("BAD_REQUEST", "The body is not valid JSON.", { cause });
  }
  const parsed = chatRequest.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new GatewayError("BAD_REQUEST", `Chat request, at ${issue?.path.join(".") || "the top"}: ${issue?.message}.`);
}

/** Refuses members that no other provider supports and that change the answer. */
export function refuseUntranslatable({ logprobs, functions, modalities }: ChatRequest, provider: string): void {
  if (logprobs) throw refuse("logprobs", provider);
  if (functions?.length) throw refuse("functions (send tools instead)", provider);
  if (modalities?.includes("audio")) throw refuse("An answer in audio (modalities)", provider);
}

/** The error for a member that cannot be ignored silently, because it changes the shape of the answer. */
export function refuse(feature: string, provider: string): GatewayError {
  return new GatewayError("BAD_REQUEST", `${feature} cannot be translated for ${provider}.`);
}

export function contentText(value: ChatContent | null | undefined): string {
  if (typeof value === "string") return value;
  return (value ?? [])
    .map((item) => (item.type === "text" ? item.text : item.type === "refusal" ? item.refusal : ""))
    .join("");
}

/** "data:image/png;base64,AAAA" in its two halves; null for any other address. */
export function parseDataUrl(url: string): { mediaType: string; data: string } | null {
  const match = /^data:([\w.+-]+\/[\w.+-]+)(?:;[\w=.+-]+)*;base64,/.exec(url.slice(0, 200));
  return match?.[1] ? { mediaType: match[1], data: url.slice(match[0].length) } : null;
}

export const outputLimitOf = (request: ChatRequest): number | null =>
  request.max_completion_tokens ?? request.max_tokens ?? null;

/** Arguments of a call as an object; a model that wrote something else gets it back under one name. */
export function callArguments(call: ChatToolCall): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(call.function.arguments || "{}");
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed))
      return parsed as Record<string, unknown>;
    return { value: parsed };
  } catch {
    return { value: call.function.arguments };
  }
}
