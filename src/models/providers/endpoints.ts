/** Which dialect an endpoint speaks, told by the end of its path, whatever provider serves it. */

import { plainPath } from "../plain-path.ts";
import { anthropicBatches, anthropicMessages } from "./anthropic/dialect.ts";
import { cohereChat, cohereOlderChat, cohereOther } from "./cohere/dialect.ts";
import type { Dialect } from "./dialect.ts";
import { geminiEmbed, geminiGenerate } from "./gemini/dialect.ts";
import {
  openaiChat,
  openaiCompletions,
  openaiEmbeddings,
  openaiOther,
  openaiResponses,
  uncounted,
} from "./openai/dialects.ts";

const BY_ENDING: readonly (readonly [string, Dialect])[] = [
  ["/chat/completions", openaiChat],
  ["/completions", openaiCompletions],
  ["/responses", openaiResponses],
  ["/embeddings", openaiEmbeddings],
  ["/messages", anthropicMessages],
  ["/messages/batches", anthropicBatches],
  [":generateContent", geminiGenerate],
  [":streamGenerateContent", geminiGenerate],
  [":embedContent", geminiEmbed],
  [":batchEmbedContents", geminiEmbed],
  ["/v2/chat", cohereChat],
  ["/v1/chat", cohereOlderChat],
  ["/v2/embed", cohereOther],
  ["/v1/embed", cohereOther],
  ["/v2/rerank", cohereOther],
  ["/v1/rerank", cohereOther],
];

/** What is kept of earlier calls; their counts are told again whenever one of them is looked at. */
const KEPT = /\/(?:chat\/completions|responses|batches)\/(?!compact$)[^/]+(?:\/cancel)?$/;

/** `path` has no query. Only a POST generates anything. */
export function dialectOf(path: string, method = "POST"): Dialect {
  if (method !== "POST") return uncounted;
  return byEnding(path) ?? byEnding(plainPath(path)) ?? (KEPT.test(path) ? uncounted : openaiOther);
}

const byEnding = (path: string): Dialect | undefined => BY_ENDING.find(([ending]) => path.endsWith(ending))?.[1];
