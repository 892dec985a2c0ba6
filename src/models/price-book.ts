/**
 * What tokens cost. Prices are decimal text in USD per million tokens, as providers publish them; the arithmetic is
 * in whole pico-USD per token (six decimals of a price), so nothing is ever rounded but the final sum of a request,
 * once, to nano-USD.
 *
 * The shipped prices are defaults of a date (see default-prices.ts). The operator's file and a model's own prices
 * come first. A model nobody has a price for costs nothing and is reported as unpriced.
 */

import type { ModelPrices } from "../contract/model-prices.ts";
import { DEFAULT_PRICES } from "./default-prices.ts";
import type { PriceTable } from "./price-table.ts";
import { priceTable } from "./price-table.ts";
import { findProvider } from "./providers/catalogue.ts";
import type { TokenUsage } from "./providers/token-usage.ts";

export interface ModelPriceBook {
  pricesOf(provider: string, model: string): ModelPrices | null;
}

/** `overrides` is the operator's table; an entry replaces the shipped one of the same provider and model. */
export function createModelPriceBook(overrides: PriceTable = {}): ModelPriceBook {
  return {
    pricesOf(provider, model) {
      const names = spellings(model);
      for (const table of [overrides[provider], DEFAULT_PRICES[provider]])
        for (const name of names) if (table && Object.hasOwn(table, name)) return table[name] ?? null;
      return null;
    },
  };
}

/**
 * Reads the operator's price file; the message names the entry that is wrong. Providers and models may be spelt there
 * as they are in a model's record: a price that nobody finds would be worse than none.
 */
export function parsePriceTable(text: string): PriceTable {
  const parsed = priceTable.safeParse(JSON.parse(text));
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new Error(`at ${issue?.path.join(".") || "the top"}: ${issue?.message}`);
  }
  const table: PriceTable = {};
  for (const [name, models] of Object.entries(parsed.data)) {
    const provider = findProvider(name)?.name;
    if (!provider) throw new Error(`at ${name}: there is no such provider; any other server is "openai-compatible"`);
    const named = Object.entries(models).map(([model, prices]) => [plainName(model), prices] as const);
    table[provider] = { ...table[provider], ...Object.fromEntries(named) };
  }
  return table;
}

/** A thousand dollars for one request: more is a slip of the pen in a price, or meant to make the sums overflow. */
const COST_MAX_NANO = 1e12;

/** Cost of one request in whole nano-USD. */
export function costNanoUsd(prices: ModelPrices, usage: TokenUsage): number {
  const long = prices.longContext;
  const rate = long && usage.inputTokens > long.overInputTokens ? long : prices;
  const cached = Math.min(usage.cachedInputTokens, usage.inputTokens);
  const written = Math.min(usage.cacheWriteTokens, usage.inputTokens - cached);
  const writtenHour = Math.min(usage.cacheWriteHourTokens, written);
  const fresh = usage.inputTokens - cached - written;
  const cachedAudio = Math.min(usage.audio?.cachedInputTokens ?? 0, cached);
  const freshAudio = Math.max(0, Math.min((usage.audio?.inputTokens ?? 0) - cachedAudio, fresh));
  const audioOut = Math.min(usage.audio?.outputTokens ?? 0, usage.outputTokens);
  const cachedRate = rate.cachedInput ?? rate.input;
  const pico =
    of(rate.input, fresh - freshAudio) +
    of(rate.audioInput ?? rate.input, freshAudio) +
    of(cachedRate, cached - cachedAudio) +
    of(rate.cachedAudioInput ?? cachedRate, cachedAudio) +
    of(rate.cacheWrite ?? rate.input, written - writtenHour) +
    of(rate.cacheWriteHour ?? rate.cacheWrite ?? rate.input, writtenHour) +
    of(rate.output, usage.outputTokens - audioOut) +
    of(rate.audioOutput ?? rate.output, audioOut);
  const nano = (pico + 500n) / 1000n;
  return nano > COST_MAX_NANO ? COST_MAX_NANO : Number(nano);
}

const of = (text: string, tokens: number): bigint => picoUsdPerToken(text) * BigInt(tokens);

const DECIMALS = 6;
const parsed = new Map<string, bigint>();

/** "0.075" USD per million tokens is 75 000 pico-USD per token: the decimal point moves six places. */
function picoUsdPerToken(text: string): bigint {
  const known = parsed.get(text);
  if (known !== undefined) return known;
  const [whole = "0", fraction = ""] = text.split(".");
  const pico = BigInt(whole + fraction.padEnd(DECIMALS, "0"));
  // Prices come from a table and from model records, so the distinct texts are few; the bound is for the hostile case.
  if (parsed.size < 10_000) parsed.set(text, pico);
  return pico;
}

const plainName = (model: string): string => model.replace(/^models\//, "").toLowerCase();

/** Stands in a table for every model of the provider that it does not name. */
const ANY = "*";

/** A dated or "latest" name has the price of the family it names. Nothing else is guessed. */
function spellings(model: string): string[] {
  const plain = plainName(model);
  const family = plain.replace(/-(?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|\d{2}-\d{4}|latest)$/, "");
  return family === plain ? [plain, ANY] : [plain, family, ANY];
}
