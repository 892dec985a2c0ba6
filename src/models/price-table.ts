import { z } from "zod";
import { modelPrices } from "../contract/model-prices.ts";

/** Provider name, then model name. */
export const priceTable = z.record(z.string(), z.record(z.string(), modelPrices));

export type PriceTable = z.infer<typeof priceTable>;
