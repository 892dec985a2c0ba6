/** Chat and embeddings answers of the development provider. */
import { createHash } from "node:crypto";
import { formatSseEvent } from "../../../lib/network/sse.ts";
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
  /** Derived from the request, so that the same request gets the same ids. */
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

export const failure = (status: number, message: string): LocalAnswer =>
  json(status, { error: { message, type: "invalid_request_error", param: null, code: null } });

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

const DIMENSIONS_DEFAULT = 64;
const DIMENSIONS_MAX = 4096;
/** OpenAI's own limit. */
const TEXTS_MAX = 2048;
/** Of all vectors of one answer: they are made in one go, while every other request waits. */
const NUMBERS_MAX = 262_144;

/** Vectors of unit length made from a hash of the words: texts of the same words are equal, others are far apart. */
export function embeddingsAnswer(context: MockContext): LocalAnswer {
  const { input, dimensions, encoding_format: format } = context.body;
  // A list of numbers is one text, given as tokens.
  const texts = (Array.isArray(input) && typeof input[0] !== "number" ? input : [input]).map(String);
  const asked = typeof dimensions === "number" && dimensions > 0 ? Math.ceil(dimensions) : DIMENSIONS_DEFAULT;
  const size = Math.min(asked, DIMENSIONS_MAX);
  if (texts.length > TEXTS_MAX || texts.length * size > NUMBERS_MAX)
    return failure(
      400,
      `The development provider makes at most ${TEXTS_MAX} embeddings and ${NUMBERS_MAX} numbers in one request; ` +
        `these are ${texts.length} embeddings of ${size} numbers.`,
    );
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
  const words =
    text
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}]+/gu)
      ?.join(" ") ?? text;
  const seed = createHash("sha256").update(words).digest();
  for (let block = 0; block * 32 < size; block += 1) {
    const hash = createHash("sha256").update(seed).update(`${block}`).digest();
    for (let byte = 0; byte < 32 && block * 32 + byte < size; byte += 1) {
      vector[block * 32 + byte] = (hash[byte] ?? 0) / 127.5 - 1;
    }
  }
  const length = Math.hypot(...vector) || 1;
  return vector.map((value) => value / length);
}
