/** The reply of the development provider in the words of each dialect it speaks. */
import { createHash } from "node:crypto";
import { formatSseEvent } from "../../../lib/sse.ts";
import { at } from "../../../lib/untrusted-json.ts";
import type { LocalAnswer } from "../local-answer.ts";
import {
  type AnswerMessage,
  type ChatDelta,
  chatChunk,
  chatCompletion,
  type FinishReason,
  seconds,
  usageChunk,
} from "../openai/chat-answer.ts";
import type { Reply } from "./reply.ts";

export interface MockContext {
  /** Told from the request, so that the same request gets the same ids. */
  id: string;
  model: string;
  nowMs: number;
  stream: boolean;
  body: Record<string, unknown>;
}

export const json = (status: number, value: unknown): LocalAnswer => ({
  status,
  contentType: "application/json",
  chunks: [JSON.stringify(value)],
});

const events = (chunks: string[]): LocalAnswer => ({
  status: 200,
  contentType: "text/event-stream; charset=utf-8",
  chunks,
});

export function chatAnswer(reply: Reply, context: MockContext): LocalAnswer {
  const head = { id: `chatcmpl-${context.id}`, created: seconds(context.nowMs), model: context.model };
  const finish: FinishReason = reply.call ? "tool_calls" : reply.truncated ? "length" : "stop";
  const call = reply.call && {
    id: `call_${context.id}`,
    type: "function" as const,
    function: { name: reply.call.name, arguments: reply.call.args },
  };
  if (!context.stream) {
    const message: AnswerMessage = { role: "assistant", content: call ? null : reply.pieces.join(""), refusal: null };
    if (call) message.tool_calls = [call];
    return json(200, chatCompletion(head, [{ message, finish }], reply.usage));
  }
  const first: ChatDelta = call
    ? { role: "assistant", tool_calls: [{ index: 0, ...call, function: { name: call.function.name, arguments: "" } }] }
    : { role: "assistant", content: "" };
  const deltas = reply.pieces.map(
    (piece): ChatDelta => (call ? { tool_calls: [{ index: 0, function: { arguments: piece } }] } : { content: piece }),
  );
  const chunks = [first, ...deltas].map((delta) => chatChunk(head, delta));
  chunks.push(chatChunk(head, {}, finish));
  if (at(context.body.stream_options, "include_usage") === true) chunks.push(usageChunk(head, reply.usage));
  return events([...chunks.map((chunk) => formatSseEvent(JSON.stringify(chunk))), formatSseEvent("[DONE]")]);
}

export function messagesAnswer(reply: Reply, context: MockContext): LocalAnswer {
  const block = reply.call
    ? {
        type: "tool_use",
        id: `toolu_${context.id}`,
        name: reply.call.name,
        input: JSON.parse(reply.call.args) as unknown,
      }
    : { type: "text", text: reply.pieces.join("") };
  const stop = reply.call ? "tool_use" : reply.truncated ? "max_tokens" : "end_turn";
  const usage = { input_tokens: reply.usage.inputTokens, output_tokens: reply.usage.outputTokens };
  const message = {
    id: `msg_${context.id}`,
    type: "message",
    role: "assistant",
    model: context.model,
    content: [block],
    stop_reason: stop,
    stop_sequence: null,
    usage,
  };
  if (!context.stream) return json(200, message);
  const start = { ...message, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } };
  const empty = reply.call ? { ...block, input: {} } : { ...block, text: "" };
  const delta = (piece: string) =>
    reply.call ? { type: "input_json_delta", partial_json: piece } : { type: "text_delta", text: piece };
  return typedEvents([
    { type: "message_start", message: start },
    { type: "content_block_start", index: 0, content_block: empty },
    ...reply.pieces.map((piece) => ({ type: "content_block_delta", index: 0, delta: delta(piece) })),
    { type: "content_block_stop", index: 0 },
    {
      type: "message_delta",
      delta: { stop_reason: stop, stop_sequence: null },
      usage: { output_tokens: usage.output_tokens },
    },
    { type: "message_stop" },
  ]);
}

export function responsesAnswer(reply: Reply, context: MockContext): LocalAnswer {
  const text = reply.pieces.join("");
  const part = { type: "output_text", text, annotations: [] };
  const item = reply.call
    ? {
        type: "function_call",
        id: `fc_${context.id}`,
        call_id: `call_${context.id}`,
        name: reply.call.name,
        arguments: reply.call.args,
        status: "completed",
      }
    : { type: "message", id: `msg_${context.id}`, role: "assistant", status: "completed", content: [part] };
  const { inputTokens, outputTokens } = reply.usage;
  const response = {
    id: `resp_${context.id}`,
    object: "response",
    created_at: seconds(context.nowMs),
    status: reply.truncated ? "incomplete" : "completed",
    incomplete_details: reply.truncated ? { reason: "max_output_tokens" } : null,
    error: null,
    model: context.model,
    output: [item],
    usage: {
      input_tokens: inputTokens,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: outputTokens,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: inputTokens + outputTokens,
    },
  };
  if (!context.stream) return json(200, response);
  const place = { item_id: item.id, output_index: 0 };
  const open = { ...response, status: "in_progress", output: [], usage: null };
  const middle = reply.call
    ? [
        ...reply.pieces.map((delta) => ({ type: "response.function_call_arguments.delta", ...place, delta })),
        { type: "response.function_call_arguments.done", ...place, arguments: reply.call.args },
      ]
    : [
        { type: "response.content_part.added", ...place, content_index: 0, part: { ...part, text: "" } },
        ...reply.pieces.map((delta) => ({ type: "response.output_text.delta", ...place, content_index: 0, delta })),
        { type: "response.output_text.done", ...place, content_index: 0, text },
        { type: "response.content_part.done", ...place, content_index: 0, part },
      ];
  const added = reply.call
    ? { ...item, arguments: "", status: "in_progress" }
    : { ...item, content: [], status: "in_progress" };
  const end = reply.truncated ? "response.incomplete" : "response.completed";
  return typedEvents(
    [
      { type: "response.created", response: open },
      { type: "response.output_item.added", output_index: 0, item: added },
      ...middle,
      { type: "response.output_item.done", output_index: 0, item },
      { type: end, response },
    ].map((event, sequence_number) => ({ ...event, sequence_number })),
  );
}

const typedEvents = (list: ({ type: string } & Record<string, unknown>)[]): LocalAnswer =>
  events(list.map((event) => formatSseEvent(JSON.stringify(event), event.type)));

const DIMENSIONS_DEFAULT = 64;
const DIMENSIONS_MAX = 4096;

/** Vectors of unit length made from a hash of the text: equal texts are equal, others are far apart. */
export function embeddingsAnswer(context: MockContext): LocalAnswer {
  const { input, dimensions, encoding_format: format } = context.body;
  const texts = (Array.isArray(input) ? input : [input]).map(String);
  const asked = typeof dimensions === "number" && dimensions > 0 ? Math.floor(dimensions) : DIMENSIONS_DEFAULT;
  const size = Math.min(asked, DIMENSIONS_MAX);
  const tokens = texts.reduce((sum, text) => sum + (text.match(/\S+/g)?.length ?? 0), 0);
  const data = texts.map((text, index) => {
    const vector = vectorOf(text, size);
    const embedding = format === "base64" ? Buffer.from(vector.buffer).toString("base64") : Array.from(vector);
    return { object: "embedding", index, embedding };
  });
  const usage = { prompt_tokens: tokens, total_tokens: tokens };
  return json(200, { object: "list", model: context.model, data, usage });
}

function vectorOf(text: string, size: number): Float32Array {
  const vector = new Float32Array(size);
  for (let block = 0; block * 32 < size; block += 1) {
    const hash = createHash("sha256").update(`${block}:${text}`).digest();
    for (let byte = 0; byte < 32 && block * 32 + byte < size; byte += 1) {
      vector[block * 32 + byte] = (hash[byte] ?? 0) / 127.5 - 1;
    }
  }
  const length = Math.hypot(...vector) || 1;
  return vector.map((value) => value / length);
}
