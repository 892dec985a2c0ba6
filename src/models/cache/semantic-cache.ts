/** Answers that are given to questions with the same meaning (`spec.cache.semantic`). */
import { at, itemsOf } from "../../lib/untrusted-json.ts";
import type { AnswerCache, CacheMiss, CacheQuestion, CacheUse } from "./answer-cache.ts";
import { keyOf } from "./answer-cache.ts";
import { type Meaning, meaningOf } from "./meaning.ts";
import { questionText } from "./question-text.ts";

/** Asks a model of the workspace for the embedding of a text, and answers with the body of its answer; may reject. */
export type AskEmbedding = (model: string, text: string) => Promise<unknown>;

/** A miss with the question's meaning, under which its answer will be kept, or a kept answer. Never rejects. */
export async function useSimilar(
  cache: AnswerCache,
  question: CacheQuestion,
  miss: CacheMiss,
  ask: AskEmbedding,
): Promise<CacheUse> {
  const meaning = await askMeaning(question, ask);
  if (!meaning) return miss;
  const near = miss.isWanted ? null : cache.findSimilar(question.workspace, meaning, question.rules);
  return near ?? { ...miss, meaning };
}

async function askMeaning(question: CacheQuestion, ask: AskEmbedding): Promise<Meaning | null> {
  const { semantic } = question.rules;
  const asked = semantic ? questionText(question.call) : null;
  if (!semantic || !asked) return null;
  const answer = await ask(semantic.model, asked.text).catch(() => null);
  // Embeddings of two models do not belong together.
  const frame = keyOf(question, Buffer.from(JSON.stringify([semantic.model, asked.rest])));
  return meaningOf(frame, asked.text, at(itemsOf(at(answer, "data"))[0], "embedding"));
}
