/** A provider's prices for a model, in USD per million tokens: as text, because a number would lose digits. */
import { z } from "zod";

const price = z
  .string()
  .regex(/^\d{1,6}(\.\d{1,6})?$/, "a price is a decimal number of USD per million tokens, with at most six decimals");

const rates = {
  input: price,
  output: price,
  /** Input read from the provider's prompt cache; the input price when absent. */
  cachedInput: price.optional(),
  /** Input written to the cache; the input price when absent. */
  cacheWrite: price.optional(),
  /** Input written to a cache kept for an hour; the cacheWrite price when absent. */
  cacheWriteHour: price.optional(),
  /** Audio in the input of a realtime session; the input price when absent. */
  audioInput: price.optional(),
  /** Audio that is read from the cache; the cachedInput price when absent. */
  cachedAudioInput: price.optional(),
  /** Audio that a realtime session generates; the output price when absent. */
  audioOutput: price.optional(),
};

export const modelPrices = z.strictObject({
  ...rates,
  /** Rates of a request whose input is longer than this many tokens. */
  longContext: z.strictObject({ overInputTokens: z.int().positive(), ...rates }).optional(),
});

export type ModelPrices = z.infer<typeof modelPrices>;
