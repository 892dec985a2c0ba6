/** The model APIs with their ledger, caps and prices. */
import { join } from "node:path";
import type { Logger } from "pino";
import type { Config } from "../config.ts";
import { GATEWAY_DOCS_URL } from "../contract/gateway-errors.ts";
import type { Place } from "../contract/placement.ts";
import { Stack } from "../lib/lifecycle.ts";
import { createOutbound } from "../lib/network/outbound-http.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { Meter } from "../metering/meter.ts";
import { startTokenMeter } from "../metering/model-tokens.ts";
import type { ResourceMetrics } from "../metering/resource-metrics/recorder.ts";
import { createModelGateway, type ModelGateway } from "../models/model-gateway.ts";
import type { ModelPriceBook } from "../models/price-book.ts";
import { createStoredBudget } from "../models/stored-budget.ts";
import { createStoredModels } from "../models/stored-models.ts";
import { createTokenBudget } from "../models/token-budget.ts";
import type { Store } from "../store/store.ts";

interface ModelParts {
  config: Config;
  store: Store;
  meter: Meter;
  metrics: Pick<ResourceMetrics, "ended">;
  priceBook: ModelPriceBook;
  clock: Clock;
  log: Logger;
  holder: string;
  privateAddresses: boolean;
  /** Where the server stands, for location policies. */
  place: Place;
}

export async function startModels(parts: ModelParts): Promise<ModelGateway> {
  const { config, store, meter, priceBook, clock, log, holder, privateAddresses, place, metrics } = parts;
  const stack = new Stack();
  const { resolveModel } = stack.add(createStoredModels(store));
  const usage = stack.add(
    await startTokenMeter(meter, join(config.data, "model-usage"), (error) =>
      log.warn({ err: error }, "the tokens of a request could not be recorded"),
    ),
  );
  const alone = store.database.dialect === "sqlite";
  const state = createStoredBudget({ records: store.records, clock, holder, alone });
  const gateway = stack.add(
    createModelGateway({
      ...{ resolveModel, usage, priceBook, clock, log, privateAddresses },
      outbound: stack.add(createOutbound({ privateAddresses })),
      batchKey: store.keyFor("model-batches"),
      ended: metrics.ended,
      budget: createTokenBudget({ state, clock }),
      place,
      brand: config.brand,
      docsUrl: GATEWAY_DOCS_URL,
    }),
  );
  return { ...gateway, stop: () => stack.stop() };
}
