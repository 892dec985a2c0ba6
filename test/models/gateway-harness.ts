/** The model gateway behind the inference edge, wired to memory instead of a store. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Registry } from "prom-client";
import type { BalanceRules } from "../../src/contract/model-balance.ts";
import type { CacheRules } from "../../src/contract/model-cache.ts";
import type { GuardrailRules } from "../../src/contract/model-guardrails.ts";
import type { ModelPrices } from "../../src/contract/model-prices.ts";
import { createGateway } from "../../src/gateway/gateway.ts";
import { DEFAULT_LIMITS } from "../../src/gateway/limits.ts";
import { attachGateway, SERVER_OPTIONS } from "../../src/http/attach.ts";
import { createOutbound } from "../../src/lib/network/outbound-http.ts";
import { NO_PROXIES } from "../../src/lib/network/proxies.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import type { ModelGatewayDeps } from "../../src/models/gateway-deps.ts";
import { createModelGateway } from "../../src/models/model-gateway.ts";
import type { PolicyRecord, ProviderConnection, ResolvedModel } from "../../src/models/model-records.ts";
import type { ModelUsage } from "../../src/models/model-usage.ts";
import { createModelPriceBook } from "../../src/models/price-book.ts";
import { createTokenBudget, MemoryBudgetState } from "../../src/models/token-budget.ts";

export interface TestModel {
  type: string;
  model?: string;
  /** Of the connection; that of the model when absent. */
  integration?: string;
  baseUrl?: string;
  secret?: Record<string, string>;
  config?: Record<string, string>;
  endpointName?: string;
  organization?: string;
  fallbacks?: string[];
  policies?: PolicyRecord[];
  prices?: ModelPrices;
  cache?: CacheRules;
  balance?: BalanceRules;
  guardrails?: GuardrailRules;
  enabled?: boolean;
}

export interface TestGateway extends AsyncDisposable {
  /** Address of a model, without a sub-path. */
  url(model: string): string;
  usage: ModelUsage[];
  logs: { fields: Record<string, unknown>; message: string }[];
  /** The listener, for servers of another protocol. */
  serve(req: IncomingMessage, res: ServerResponse): void;
  /** Takes no new requests; resolves when those under way are over. */
  drain(): Promise<void>;
  /** Resolves when that many requests have been recorded. */
  recorded(count: number): Promise<ModelUsage[]>;
}

export const WORKSPACE = "acme";

/** Retries at once: what is under test is that they happen, not how long they take. */
export const FAST_RETRY = { retriesMax: 2, baseMs: 1, maxMs: 2, retryAfterMaxMs: 2000 };

export type StartGateway = (
  models: Record<string, TestModel>,
  overrides?: Partial<ModelGatewayDeps>,
) => Promise<TestGateway>;

/** On the lane, as in production. */
export const startGateway: StartGateway = (models, overrides) => start(models, overrides, true);
/** Behind Node's own HTTP server, which takes what the lane leaves. */
export const startBehindNode: StartGateway = (models, overrides) => start(models, overrides, false);

async function start(
  models: Record<string, TestModel>,
  overrides: Partial<ModelGatewayDeps> = {},
  fastLane: boolean,
): Promise<TestGateway> {
  const usage: ModelUsage[] = [];
  const logs: TestGateway["logs"] = [];
  const waiting: { count: number; resolve: (events: ModelUsage[]) => void }[] = [];
  const log = (fields: Record<string, unknown>, message: string) => void logs.push({ fields, message });
  const outbound = createOutbound({ privateAddresses: true });
  const gateway = createModelGateway({
    resolveModel: (_workspace, name) => (models[name] ? resolvedOf(name, models[name]) : null),
    usage: {
      note: () => undefined,
      record(event) {
        usage.push(event);
        for (const waiter of waiting) if (usage.length >= waiter.count) waiter.resolve(usage);
      },
    },
    budget: createTokenBudget({ state: new MemoryBudgetState(systemClock), clock: systemClock }),
    priceBook: createModelPriceBook(),
    clock: systemClock,
    log: { debug: () => undefined, warn: log, error: log },
    outbound,
    batchKey: Buffer.alloc(32),
    privateAddresses: true,
    place: null,
    brand: "service",
    docsUrl: "https://docs.example/errors",
    ...overrides,
    limits: { retry: FAST_RETRY, tickMs: 20, ...overrides.limits },
  });
  let count = 0;
  const edge = createGateway({
    settings: {
      brand: "service",
      proxies: NO_PROXIES,
      pathPages: "sandboxed",
      isLoopback: false,
      docsUrl: "",
      limits: DEFAULT_LIMITS,
    },
    clock: systemClock,
    log: { debug: () => undefined, warn: log, error: log },
    registry: new Registry(),
    random: Math.random,
    isCustomDomain: () => false,
    answerers: {
      model: (down, { workspace, name, path }) => {
        count += 1;
        const subject = { id: down.header("x-test-key") ?? "key-1", type: "api_key" };
        const target = { workspace, model: name, subPath: path === "/" ? "" : path, subject };
        return gateway.handleModelRequest(down, { ...target, requestId: `req-${count}` });
      },
    },
    ...NO_WORKLOADS,
  });
  const server = createServer(SERVER_OPTIONS);
  attachGateway(server, edge, { request: (_, res) => res.end() }, { fastLane });
  const serve: TestGateway["serve"] = (req, res) => edge.request(req, res, edge.route(req));
  const port = await listen(server);
  return {
    url: (model) => `http://127.0.0.1:${port}/${WORKSPACE}/models/${model}`,
    serve,
    usage,
    logs,
    drain: () => edge.stop(),
    recorded: (wanted) =>
      usage.length >= wanted
        ? Promise.resolve(usage)
        : new Promise((resolve) => void waiting.push({ count: wanted, resolve })),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      const closed = new Promise((resolve) => server.close(resolve));
      await edge.stop(0);
      await closed;
      await gateway.stop();
      await outbound.stop();
    },
  };
}

const nothing = async (): Promise<never> => {
  throw new Error("there are only models here");
};

const NO_WORKLOADS = {
  authenticate: () => null,
  authorize: () => false,
  stillAllowed: async () => false,
  mayReadLogs: () => true,
  issuer: () => "http://127.0.0.1",
  resolve: () => null,
  ready: () => null,
  rejoin: () => null,
  wake: nothing,
  dial: nothing,
  keepRequest: async () => false,
  meter() {},
};

function resolvedOf(name: string, model: TestModel): ResolvedModel {
  const { type, model: providerModel, endpointName, organization, fallbacks, policies, enabled, prices, cache } = model;
  return {
    model: { name, spec: { enabled, runtime: { type, model: providerModel, endpointName, organization }, fallbacks } },
    ledger: { accountId: "account", modelUid: `uid-of-${name}` },
    connection: connectionOf(model),
    policies: policies ?? [],
    prices,
    cache,
    balance: model.balance,
    guardrails: model.guardrails && [model.guardrails],
  };
}

export function connectionOf({ type, integration, baseUrl, secret, config }: TestModel): ProviderConnection {
  return {
    name: `${type}-connection`,
    integration: integration ?? type,
    config: { ...config, ...(baseUrl ? { baseUrl } : {}) },
    secret: secret ?? { apiKey: "stored-key" },
  };
}

export function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
}
