/** A provider's server that has the Responses and Messages APIs itself, and answers what the development provider would. */

import { formatSseEvent } from "../../src/lib/network/sse.ts";
import { at, isRecord, itemsOf } from "../../src/lib/untrusted-json.ts";
import type { LocalAnswer } from "../../src/models/providers/local-answer.ts";
import type { MockContext } from "../../src/models/providers/mock/answers.ts";
import { json } from "../../src/models/providers/mock/answers.ts";
import type { Conversation } from "../../src/models/providers/mock/conversation.ts";
import { type Reply, replyTo } from "../../src/models/providers/mock/reply.ts";
import { seconds } from "../../src/models/providers/openai/chat-answer.ts";

type Json = Record<string, unknown>;

const NATIVE: Record<string, (body: Json, context: MockContext) => LocalAnswer> = {
  "/v1/messages": (body, context) => messagesAnswer(replyTo(fromMessages(body)), context),
  "/v1/responses": (body, context) => responsesAnswer(replyTo(fromResponses(body)), context),
};

/** Null where the path belongs to neither API. */
export function nativeAnswer(path: string, body: Json): LocalAnswer | null {
  const context = { id: "0a1b2c", model: String(body.model), nowMs: 0, stream: body.stream === true, body };
  return NATIVE[path]?.(body, context) ?? null;
}

function fromMessages(body: Record<string, unknown>): Conversation {
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

function fromResponses(body: Record<string, unknown>): Conversation {
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

function messagesAnswer(reply: Reply, context: MockContext): LocalAnswer {
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

function responsesAnswer(reply: Reply, context: MockContext): LocalAnswer {
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

const typedEvents = (list: ({ type: string } & Record<string, unknown>)[]): LocalAnswer => ({
  status: 200,
  contentType: "text/event-stream; charset=utf-8",
  chunks: list.map((event) => formatSseEvent(JSON.stringify(event), event.type)),
});
