/** The engine alone behind a bare HTTP server: what it adds, without the platform around it. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createModelGateway } from "../../src/gateway/models/model-gateway.ts";
import { createPriceBook } from "../../src/gateway/models/price-book.ts";
import { createTokenBudget, MemoryBudgetState } from "../../src/gateway/models/token-budget.ts";
import { systemClock } from "../../src/lib/clock.ts";

const [, , baseUrl = ""] = process.argv;
const prefix = "/bench/models/m";
const resolved = {
  model: { name: "m", spec: { runtime: { type: "openai", model: "gpt-4o-mini" } } },
  connection: { name: "c", integration: "openai", config: { baseUrl }, secret: { apiKey: "key" } },
  policies: [],
};
let recorded = 0;
const gateway = createModelGateway({
  resolveModel: () => resolved,
  usage: {
    record(event) {
      if (event.outcome === "completed" && event.outputTokens !== 100)
        throw new Error("the upstream's usage was not metered");
      recorded += 1;
    },
  },
  budget: createTokenBudget({ state: new MemoryBudgetState(systemClock), clock: systemClock }),
  priceBook: createPriceBook(),
  clock: systemClock,
  log: console,
  privateAddresses: true,
  location: null,
  brandWords: ["service"],
  docsBase: "",
});
const server = createServer((req, res) => {
  const target = { workspace: "bench", model: "m", subPath: (req.url ?? "").slice(prefix.length), subject: null };
  void gateway.handleModelRequest(req, res, { ...target, requestId: String(recorded) });
});
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
