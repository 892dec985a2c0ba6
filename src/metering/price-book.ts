/**
 * Prices, exact to the last digit. A price is a whole number of pico-dollars (10^-12 USD) for one unit; a cost is a
 * whole number of 10^-10 USD. A cost is rounded in one place only: the quantity of one resource and dimension in one
 * UTC hour, times the price of that hour, half up. Everything above an hour is a sum of such whole numbers, so the
 * buckets of a group, the groups of an answer and the bill as a whole always add up.
 */
import { parse as parseToml } from "smol-toml";
import * as z from "zod";
import { PlatformError } from "../contract/errors.ts";
import { hourMs, hourOf, parseRfc3339Utc } from "../lib/time/utc-calendar.ts";
import type { RateOf, UsageRate } from "../store/usage/port.ts";
import { DIMENSION_NAMES, DIMENSIONS, type DimensionName, isDimension, UNIT_BASE } from "./dimensions.ts";

export const PRICE_DECIMALS = 12;
export const COST_DECIMALS = 10;

/** Highest price, 1000 USD per unit: anything above is a typing mistake, and sums stay far below 2^63. */
const PRICE_MAX_PICO = 1000n * 10n ** BigInt(PRICE_DECIMALS);
/** Most prices per dimension over time: a daily change for ten years. */
const PRICES_MAX = 4000;

export interface Price {
  fromHour: number;
  pico: bigint;
}

export interface PriceBook {
  /** The prices of every dimension, oldest first. */
  readonly prices: ReadonlyMap<DimensionName, Price[]>;
  /** The rate of a dimension in the UTC hour with this number. */
  rate(dimension: DimensionName, hour: number): UsageRate;
  /** All prices in the form of a price file, oldest first. */
  list(): { dimension: DimensionName; usd: string; from: string | null }[];
}

/** The default prices in USD; an operator overrides them per dimension. Dimensions not named here are free. */
export const DEFAULT_PRICES: Partial<Record<DimensionName, string>> = {
  sandbox_compute_runtime_gbs: "0.0000115",
  sandbox_image_storage_gbs: "0.00000002",
  sandbox_snapshot_storage_gbs: "0.00000003",
  agent_compute_runtime_gbs: "0.0000115",
  agent_image_storage_gbs: "0.00000002",
  agent_async_requests_count: "0.0000002",
  job_compute_runtime_gbs: "0.0000115",
  job_image_storage_gbs: "0.00000002",
  mcp_server_compute_runtime_gbs: "0.0000115",
  mcp_server_image_storage_gbs: "0.00000002",
  volume_storage_gbs: "0.000000045",
  custom_domain_active_time_hours: "0.0014",
};

const priceFile = z.strictObject({
  currency: z.literal("USD").default("USD"),
  price: z
    .array(
      z.strictObject({
        dimension: z.string(),
        usd: z.string('must be text such as "0.0000115": a number would lose digits'),
        from: z.union([z.string(), z.date()]).optional(),
      }),
    )
    .max(PRICES_MAX),
});

export type PriceFile = z.input<typeof priceFile>;

/** The prices of `others` (default: the shipped ones), replaced by those of `file` for every dimension it names. */
export function createPriceBook(file: unknown = { price: [] }, others?: PriceBook): PriceBook {
  const parsed = priceFile.safeParse(file);
  if (!parsed.success) throw invalidBook(z.prettifyError(parsed.error));
  const prices = new Map<DimensionName, Price[]>();
  for (const [index, entry] of parsed.data.price.entries()) {
    const where = `price ${index + 1}`;
    if (!isDimension(entry.dimension)) throw invalidBook(`${where}: there is no dimension "${entry.dimension}"`);
    const known = prices.get(entry.dimension) ?? [];
    const price = { fromHour: effectiveHour(entry.from, where), pico: parsePrice(entry.usd, where) };
    if (known.some(({ fromHour }) => fromHour === price.fromHour)) {
      throw invalidBook(`${where}: ${entry.dimension} already has a price from that time on`);
    }
    prices.set(entry.dimension, [...known, price]);
  }
  for (const list of prices.values()) list.sort((a, b) => a.fromHour - b.fromHour);
  for (const [dimension, list] of others?.prices ?? shippedPrices())
    if (!prices.has(dimension)) prices.set(dimension, list);
  return bookOf(prices);
}

const shippedPrices = (): [DimensionName, Price[]][] =>
  DIMENSION_NAMES.map((dimension) => {
    const pico = parsePrice(DEFAULT_PRICES[dimension] ?? "0", dimension);
    return [dimension, [{ fromHour: Number.NEGATIVE_INFINITY, pico }]];
  });

/** Parses a price file: TOML, or JSON when it begins with a brace. */
export function parsePriceFile(text: string): unknown {
  try {
    return text.trimStart().startsWith("{") ? JSON.parse(text) : parseToml(text);
  } catch (error) {
    throw invalidBook(error instanceof Error ? error.message : String(error));
  }
}

/** The book as a RateOf for the ledger; unknown dimensions are free. */
export const rateOf =
  (book: PriceBook): RateOf =>
  (dimension, hour) =>
    isDimension(dimension) ? book.rate(dimension, hour) : { numerator: 0n, denominator: 1n };

/** A cost as a JSON number: exact up to 99,999 USD; beyond that the last digits are those of a double. */
export const costToUsd = (cost: bigint): number =>
  // A safe integer divided once gives the double nearest to the decimal, as if the decimal had been parsed.
  cost <= Number.MAX_SAFE_INTEGER ? Number(cost) / 10 ** COST_DECIMALS : Number(costToDecimal(cost));

/** A cost with all its decimals as text, for exports. */
export function costToDecimal(cost: bigint): string {
  return decimalText(cost, COST_DECIMALS);
}

function bookOf(prices: ReadonlyMap<DimensionName, Price[]>): PriceBook {
  return {
    prices,
    rate(dimension, hour) {
      const price = (prices.get(dimension) ?? []).findLast(({ fromHour }) => fromHour <= hour);
      return {
        // Before its first price a dimension is free.
        numerator: price?.pico ?? 0n,
        denominator: UNIT_BASE[DIMENSIONS[dimension].unit] * 10n ** BigInt(PRICE_DECIMALS - COST_DECIMALS),
      };
    },
    list: () =>
      [...prices].flatMap(([dimension, list]) =>
        list.map(({ fromHour, pico }) => ({
          dimension,
          usd: decimalText(pico, PRICE_DECIMALS),
          from: Number.isFinite(fromHour) ? new Date(hourMs(fromHour)).toISOString() : null,
        })),
      ),
  };
}

function effectiveHour(from: string | Date | undefined, where: string): number {
  if (from === undefined) return Number.NEGATIVE_INFINITY;
  const ms = typeof from === "string" ? parseRfc3339Utc(from) : from.getTime();
  if (ms === null || Number.isNaN(ms) || hourMs(hourOf(ms)) !== ms) {
    throw invalidBook(`${where}: "from" must be a full UTC hour such as 2026-07-01T00:00:00Z`);
  }
  return hourOf(ms);
}

function parsePrice(text: string, where: string): bigint {
  const match = /^(\d{1,9})(?:\.(\d{1,12}))?$/.exec(text);
  if (!match) throw invalidBook(`${where}: "${text}" is not a price in USD with at most ${PRICE_DECIMALS} decimals`);
  const pico = BigInt(`${match[1]}${(match[2] ?? "").padEnd(PRICE_DECIMALS, "0")}`);
  if (pico > PRICE_MAX_PICO) throw invalidBook(`${where}: ${text} USD for one unit is more than 1000 USD`);
  return pico;
}

function decimalText(value: bigint, decimals: number): string {
  const digits = value.toString().padStart(decimals + 1, "0");
  const fraction = digits.slice(-decimals).replace(/0+$/, "");
  return `${digits.slice(0, -decimals)}${fraction ? `.${fraction}` : ""}`;
}

const invalidBook = (reason: string): PlatformError =>
  new PlatformError("invalid_field", `The price book cannot be used: ${reason}`);
