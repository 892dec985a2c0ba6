/** Which dialect an endpoint speaks, told by the end of its path, whatever provider serves it. */
import { anthropicMessages } from "./anthropic/dialect.ts";
import { cohereChat, cohereOther } from "./cohere/dialect.ts";
import type { Dialect } from "./dialect.ts";
import { geminiGenerate } from "./gemini/dialect.ts";
import { openaiChat, openaiCompletions, openaiEmbeddings, openaiOther, openaiResponses } from "./openai/dialects.ts";

const BY_ENDING: readonly (readonly [string, Dialect])[] = [
  ["/chat/completions", openaiChat],
  ["/completions", openaiCompletions],
  ["/responses", openaiResponses],
  ["/embeddings", openaiEmbeddings],
  ["/messages", anthropicMessages],
  [":generateContent", geminiGenerate],
  [":streamGenerateContent", geminiGenerate],
  ["/v2/chat", cohereChat],
  ["/v2/embed", cohereOther],
  ["/v1/embed", cohereOther],
  ["/v2/rerank", cohereOther],
  ["/v1/rerank", cohereOther],
];

/** `path` has no query. */
export function dialectOf(path: string): Dialect {
  return BY_ENDING.find(([ending]) => path.endsWith(ending))?.[1] ?? openaiOther;
}
