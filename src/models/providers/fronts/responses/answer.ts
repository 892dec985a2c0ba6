/** A chat answer as one of the Responses API. */
import type { TokenUsage } from "../../token-usage.ts";
import { idOf, readCompletion } from "../chat-reading.ts";
import type { FrontContext, Json } from "../front.ts";
import { isEmpty, type ProviderState, sealState } from "../provider-state.ts";

export function fromChat(answer: unknown, context: FrontContext): Json {
  const read = readCompletion(answer);
  const output: Json[] = [];
  const id = (prefix: string): string => idOf(prefix, read.id, String(output.length));
  if (read.reasoning !== "" || !isEmpty(read.state)) output.push(reasoningItem(id("rs_"), read.reasoning, read.state));
  if (read.text !== "" || read.refusal !== "") output.push(messageItem(id("msg_"), partsOf(read)));
  for (const call of read.calls) output.push(callItem(id("fc_"), call));
  const outcome = outcomeOf(read.finish);
  return responseOf(context, { id: read.id, model: read.model, output, usage: read.usage, ...outcome });
}

const partsOf = ({ text, refusal }: { text: string; refusal: string }): Json[] => [
  ...(text === "" ? [] : [textPart(text)]),
  ...(refusal === "" ? [] : [{ type: "refusal", refusal }]),
];

export const textPart = (text: string): Json => ({ type: "output_text", text, annotations: [], logprobs: [] });

export const messageItem = (id: string, content: Json[], status = "completed"): Json => ({
  type: "message",
  id,
  role: "assistant",
  status,
  content,
});

export const callItem = (id: string, call: { id: string; name: string; args: string }, status = "completed"): Json => ({
  type: "function_call",
  id,
  call_id: call.id,
  name: call.name,
  arguments: call.args,
  status,
});

export const reasoningItem = (id: string, text: string, state: ProviderState): Json => ({
  type: "reasoning",
  id,
  summary: text === "" ? [] : [{ type: "summary_text", text }],
  ...(isEmpty(state) ? {} : { encrypted_content: sealState(state) }),
});

/** Why an answer is not whole. */
const INCOMPLETE: Record<string, string> = { length: "max_output_tokens", content_filter: "content_filter" };

export function outcomeOf(finish: string | null): { status: string; incomplete_details: Json | null } {
  const reason = INCOMPLETE[finish ?? ""];
  return reason === undefined
    ? { status: "completed", incomplete_details: null }
    : { status: "incomplete", incomplete_details: { reason } };
}

interface Made {
  id: string;
  model: string;
  status: string;
  output: Json[];
  usage: TokenUsage | null;
  incomplete_details?: Json | null;
}

export function responseOf({ request, model, nowMs }: FrontContext, made: Made): Json {
  return {
    id: idOf("resp_", made.id),
    object: "response",
    created_at: Math.floor(nowMs / 1000),
    status: made.status,
    error: null,
    incomplete_details: made.incomplete_details ?? null,
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    model: made.model || model,
    output: made.output,
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: null,
    reasoning: request.reasoning ?? { effort: null, summary: null },
    // Nothing is kept, whatever was asked: who looks for it later finds this here.
    store: false,
    background: false,
    temperature: request.temperature ?? null,
    text: request.text ?? { format: { type: "text" } },
    tool_choice: request.tool_choice ?? "auto",
    tools: request.tools ?? [],
    top_p: request.top_p ?? null,
    truncation: "disabled",
    usage: made.usage && usageOf(made.usage),
    metadata: request.metadata ?? {},
  };
}

const usageOf = (usage: TokenUsage): Json => ({
  input_tokens: usage.inputTokens,
  input_tokens_details: { cached_tokens: usage.cachedInputTokens },
  output_tokens: usage.outputTokens,
  output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  total_tokens: usage.inputTokens + usage.outputTokens,
});
