/** `spec.balance` of a model: its requests are divided between several models of the workspace. */
import { z } from "zod";
import { NAME_MAX } from "./fields.ts";

/** Fine enough for a share of one in a thousand. */
const WEIGHT_MAX = 1000;
/** Each model may be asked once for one request, so this bounds the attempts; the same as for fallbacks. */
const MODELS_MAX = 8;

const weight = z.int().max(WEIGHT_MAX);

export const modelBalance = z.strictObject({
  strategy: z
    .enum(["weighted", "latency"])
    .optional()
    .describe(
      "`weighted` (the default) divides requests by weight; `latency` prefers the model that begins to answer soonest.",
    ),
  weight: weight
    .min(0)
    .optional()
    .describe("Weight of this model's own provider; default 1. With 0 only the models of the list are asked."),
  models: z
    .array(
      z.strictObject({
        name: z.string().min(1).max(NAME_MAX).describe("A model of the workspace."),
        weight: weight.min(1).optional().describe("Default 1."),
      }),
    )
    .min(1)
    .max(MODELS_MAX),
});

export type BalanceRules = z.infer<typeof modelBalance>;
