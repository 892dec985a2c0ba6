import { createHash } from "node:crypto";
import { isRecord } from "../../../lib/untrusted-json.ts";
import type { DialectName } from "../dialect.ts";
import { dialectOf } from "../endpoints.ts";
import type { LocalAnswer, LocalRequest } from "../local-answer.ts";
import { OPENAI_LIKE, type ProviderDeclaration } from "../provider.ts";
import { chatAnswer, embeddingsAnswer, json, type MockContext, messagesAnswer, responsesAnswer } from "./answers.ts";
import { type Conversation, fromChat, fromMessages, fromResponses } from "./conversation.ts";
import { imagesAnswer } from "./image.ts";
import { type Reply, replyTo } from "./reply.ts";

/**
 * The development provider: no key, no network, the same answer every time. It is never chosen by default, and every
 * answer that comes from it says so in a header.
 */
export const mock: ProviderDeclaration = {
  ...OPENAI_LIKE,
  name: "mock",
  title: "Development echo (offline)",
  baseUrl: null,
  secretNames: [],
  secretOptional: true,
  dialects: ["openai-chat", "openai-responses", "openai-embeddings", "anthropic-messages"],
  modelsPath: null,
  local: answerMock,
};

type Speaker = [
  read: (body: Record<string, unknown>) => Conversation,
  write: (reply: Reply, context: MockContext) => LocalAnswer,
];

const SPEAKS: Partial<Record<DialectName, Speaker>> = {
  "openai-chat": [fromChat, chatAnswer],
  "openai-responses": [fromResponses, responsesAnswer],
  "anthropic-messages": [fromMessages, messagesAnswer],
};

export function answerMock(request: LocalRequest): LocalAnswer {
  const dialect = dialectOf(request.path.split("?")[0] ?? "");
  const body = parse(request.body);
  if (request.method !== "POST" || !body)
    return failure(400, "The development provider takes a POST with a JSON object.");
  const context: MockContext = {
    id: createHash("sha256").update(request.body).digest("hex").slice(0, 24),
    model: String(body.model ?? "echo"),
    nowMs: request.nowMs,
    stream: body.stream === true,
    body,
  };
  if (dialect.name === "openai-embeddings") return embeddingsAnswer(context);
  const path = request.path.split("?")[0] ?? "";
  if (path.endsWith("/images/generations")) return imagesAnswer(context);
  if (path.endsWith("/messages/count_tokens"))
    return json(200, { input_tokens: replyTo(fromMessages(body)).usage.inputTokens });
  const speaker = SPEAKS[dialect.name];
  if (!speaker) return failure(404, `The development provider does not know ${request.path}.`);
  const [read, write] = speaker;
  return write(replyTo(read(body)), context);
}

function parse(body: Buffer): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}

const failure = (status: number, message: string): LocalAnswer =>
  json(status, { error: { message, type: "invalid_request_error", param: null, code: null } });
