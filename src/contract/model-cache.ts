/** `spec.cache` of a model: its answers are kept for requests that are the same. */
import { z } from "zod";
import { name } from "./fields.ts";

/** Below it, embeddings of unrelated texts meet. */
const THRESHOLD_MIN = 0.5;
export const THRESHOLD_DEFAULT = 0.95;

const TTL_MAX_SECONDS = 30 * 24 * 3600;

export const modelCache = z.strictObject({
  ttlSeconds: z.int().min(1).max(TTL_MAX_SECONDS).describe("How long an answer is given again."),
  scope: z
    .enum(["caller", "model"])
    .optional()
    .describe("Whom an answer is given to: the caller who asked first (the default), or every caller of the model."),
  semantic: z
    .strictObject({
      model: name.describe("A model of the workspace that makes embeddings. Its requests are counted as its own."),
      threshold: z
        .number()
        .min(THRESHOLD_MIN)
        .max(1)
        .optional()
        .describe(
          `The least cosine similarity of two questions that get the same answer. Default ${THRESHOLD_DEFAULT}.`,
        ),
    })
    .optional()
    .describe("Answers are also given to questions that mean the same: only the text of the last message may differ."),
});

export type CacheRules = z.infer<typeof modelCache>;
