/** What every phase of a start is given. */
import type { Logger } from "pino";
import type { Config } from "../config.ts";
import type { Settings } from "../kinds/port.ts";
import type { Stack } from "../lib/lifecycle.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { PriceBook } from "../metering/price-book.ts";
import type { ModelPriceBook } from "../models/price-book.ts";
import type { NodeIdentity } from "../node/identity.ts";

export interface Start {
  config: Config;
  log: Logger;
  version: string;
  clock: Clock;
  settings: Settings;
  prices: PriceBook;
  modelPrices: ModelPriceBook;
  /** Which node this is. */
  identity: NodeIdentity;
  /** Names this process among those that share a database. */
  holder: string;
  /** Whatever a phase starts is stopped by this stack, last in, first out. */
  stack: Stack;
}
