/** `spec.cache` of a model: its answers are kept for requests that are the same. */
import { z } from "zod";

const TTL_MAX_SECONDS = 30 * 24 * 3600;

export const modelCache = z.strictObject({
  ttlSeconds: z.int().min(1).max(TTL_MAX_SECONDS).describe("How long an answer is given again."),
  scope: z
    .enum(["caller", "model"])
    .optional()
    .describe("Whom an answer is given to: the caller who asked first (the default), or every caller of the model."),
});

export type CacheRules = z.infer<typeof modelCache>;
