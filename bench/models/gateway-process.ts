/** The inference edge with one model in a process of its own: routing, authentication, engine, without the store. */

import { hash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Registry } from "prom-client";
import { createModelHandler } from "../../src/composition/model-handler.ts";
import { createGateway } from "../../src/gateway/gateway.ts";
import { DEFAULT_LIMITS } from "../../src/gateway/limits.ts";
import { attachGateway, SERVER_OPTIONS } from "../../src/http/attach.ts";
import { createOutbound } from "../../src/lib/network/outbound-http.ts";
import { NO_PROXIES } from "../../src/lib/network/proxies.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import { createModelGateway } from "../../src/models/model-gateway.ts";
import { createModelPriceBook } from "../../src/models/price-book.ts";
import { createTokenBudget, MemoryBudgetState } from "../../src/models/token-budget.ts";

const [, , baseUrl = ""] = process.argv;
const digest = (token: string): string => hash("sha256", token, "base64");
const keys = new Map([[digest("key"), { id: "user-1", type: "user", method: "api_key" }]]);
const principals = {
  authenticate: (token: string) => keys.get(digest(token)) ?? null,
  authorize: (_: unknown, { workspace }: { workspace: string }) => workspace === "bench",
  stillAllowed: async () => true,
  mayReadLogs: () => true,
};
const resolved = {
  model: { name: "m", spec: { runtime: { type: "openai", model: "gpt-4o-mini" } } },
  ledger: { accountId: "account", modelUid: "uid" },
  connection: { name: "c", integration: "openai", config: { baseUrl }, secret: { apiKey: "key" } },
  policies: [],
};
const never = async (): Promise<never> => {
  throw new Error("there are only models here");
};
const models = createModelGateway({
  resolveModel: () => resolved,
  usage: {
    note: () => undefined,
    record(event) {
      if (event.outcome === "completed" && event.outputTokens !== 100)
        throw new Error("the upstream's usage was not metered");
    },
  },
  budget: createTokenBudget({ state: new MemoryBudgetState(systemClock), clock: systemClock }),
  priceBook: createModelPriceBook(),
  clock: systemClock,
  log: { debug: () => undefined, warn: console.warn, error: console.error },
  outbound: createOutbound({ privateAddresses: true }),
  batchKey: Buffer.alloc(32),
  privateAddresses: true,
  place: null,
  brand: "service",
  docsUrl: "",
});
const gateway = createGateway({
  settings: {
    brand: "service",
    proxies: NO_PROXIES,
    pathPages: "sandboxed",
    isLoopback: false,
    docsUrl: "",
    limits: DEFAULT_LIMITS,
  },
  clock: systemClock,
  log: { debug: () => undefined, warn: console.warn, error: console.error },
  registry: new Registry(),
  random: Math.random,
  isCustomDomain: () => false,
  issuer: () => "http://127.0.0.1",
  resolve: () => null,
  ready: () => null,
  rejoin: () => null,
  wake: never,
  dial: never,
  keepRequest: async () => false,
  meter() {},
  ...principals,
  answerers: { model: createModelHandler({ ...principals, models, brand: "service" }) },
});
const server = createServer(SERVER_OPTIONS);
attachGateway(server, gateway, { request: (_, res) => res.end() });
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
