import { createHash } from "node:crypto";
import { isRecord } from "../../../lib/untrusted-json.ts";
import { dialectOf } from "../endpoints.ts";
import type { LocalAnswer, LocalRequest } from "../local-answer.ts";
import { OPENAI_LIKE, type ProviderDeclaration } from "../provider.ts";
import { chatAnswer, embeddingsAnswer, failure, type MockContext } from "./answers.ts";
import { fromChat } from "./conversation.ts";
import { imagesAnswer } from "./image.ts";
import { inputTokensOf, replyTo } from "./reply.ts";

/**
 * The development provider: no key, no network, the same answer every time. It is never chosen by default, and every
 * answer that comes from it says so in a header. It speaks chat and embeddings; Responses and Messages reach it by the
 * fronts, so that they take and refuse the same here as on a provider without those APIs.
 */
export const mock: ProviderDeclaration = {
  ...OPENAI_LIKE,
  name: "mock",
  title: "Development echo (offline)",
  baseUrl: null,
  secretNames: [],
  secretOptional: true,
  dialects: ["openai-chat", "openai-embeddings"],
  modelsPath: null,
  local: answerMock,
  countTokens: (chat) => inputTokensOf(fromChat(chat)),
};

const KEPT_THINGS = /\/(?:files|uploads|batches)(?:\/|$)/i;

export function answerMock(request: LocalRequest): LocalAnswer {
  const path = request.path.split("?")[0] ?? "";
  const dialect = dialectOf(path);
  if (KEPT_THINGS.test(path)) return failure(404, "The development provider (`mock`) has no files and batches.");
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
  if (path.endsWith("/images/generations")) return imagesAnswer(context);
  if (dialect.name === "openai-chat") return chatAnswer(replyTo(fromChat(body)), context);
  return failure(404, `The development provider does not know ${request.path}.`);
}

function parse(body: Buffer): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}
