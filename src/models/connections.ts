/** Describes a connection to a model provider: its models, and the endpoints that can be called through it. */

import { PlatformError } from "../contract/errors.ts";
import { GatewayError } from "../contract/gateway-errors.ts";
import { at, itemsOf } from "../lib/untrusted-json.ts";
import { AnswerTimeout } from "./answer-timeout.ts";
import type { ProviderConnection } from "./model-records.ts";
import type { AnswerSink, RunningCall, WireRequest } from "./provider-call.ts";
import { findProvider } from "./providers/catalogue.ts";
import type { DialectName } from "./providers/dialect.ts";
import { dialectOf } from "./providers/endpoints.ts";
import type { ProviderDeclaration } from "./providers/provider.ts";
import { requestFields } from "./upstream-headers.ts";
import { upstreamPath } from "./upstream-path.ts";
import { baseUrlOf } from "./upstream-request.ts";
import { providerFailure, type Upstream, type Upstreams } from "./upstreams.ts";

export interface ProviderModel {
  id: string;
  displayName?: string;
  ownedBy?: string;
}

export interface EndpointConfiguration {
  method: "POST";
  /** Members of the answer that hold the input, output and total token counts. */
  token: { sent: string; received: string; total: string };
}

export interface IntegrationDescription {
  name: string;
  additionalInfos: Record<string, string>;
  endpoints: Record<string, EndpointConfiguration>;
  headers: Record<string, string>;
  params: Record<string, string>;
  /** Members of a connection's secret, the usual one first. */
  secrets: string[];
  /** The provider cannot be called without one of the secrets. */
  needsSecret: boolean;
  config: string[];
}

/** Lists of providers are short; a larger answer is not one. */
const LIST_MAX_BYTES = 8 * 1024 * 1024;
const LIST_TIMEOUT_MS = 15_000;

/** The models a connection's key may use, as the provider lists them. */
export async function listProviderModels(
  connection: ProviderConnection,
  upstreams: Upstreams,
): Promise<ProviderModel[]> {
  const provider = modelProvider(connection.integration);
  if (provider.local) return [{ id: "echo", displayName: provider.title, ownedBy: provider.name }];
  if (provider.modelsPath === null) return [];
  const body = await getJson(provider, connection, upstreams, provider.modelsPath);
  const list = itemsOf(at(body, "data") ?? at(body, "models") ?? body);
  return list.flatMap((entry) => {
    const id = at(entry, "id") ?? at(entry, "name");
    if (typeof id !== "string") return [];
    const model: ProviderModel = { id: id.replace(/^models\//, "") };
    const title = at(entry, "display_name") ?? at(entry, "displayName");
    const owner = at(entry, "owned_by");
    if (typeof title === "string") model.displayName = title;
    if (typeof owner === "string") model.ownedBy = owner;
    return [model];
  });
}

export async function getProviderModel(
  connection: ProviderConnection,
  id: string,
  upstreams: Upstreams,
): Promise<ProviderModel | null> {
  const models = await listProviderModels(connection, upstreams);
  return models.find((model) => model.id === id) ?? null;
}

/** The endpoints a model of this connection can be called at, the default one first. */
export const endpointConfigurations = (connection: ProviderConnection): Record<string, EndpointConfiguration> =>
  describeIntegration(connection.integration).endpoints;

export function describeIntegration(name: string): IntegrationDescription {
  const provider = modelProvider(name);
  const dialects = [
    dialectOf(provider.defaultPath).name,
    ...provider.dialects,
    ...(provider.chat ? (["openai-chat"] as const) : []),
  ];
  const endpoints: Record<string, EndpointConfiguration> = {};
  for (const dialect of dialects) {
    const endpoint = ENDPOINTS[dialect];
    if (endpoint) endpoints[endpoint.path] = { method: "POST", token: endpoint.token };
  }
  return {
    name: provider.name,
    additionalInfos: { title: provider.title, secret: provider.secretNames[0] ?? "" },
    endpoints,
    headers: { ...provider.headers },
    params: {},
    secrets: [...provider.secretNames],
    needsSecret: provider.secretOptional !== true,
    config: ["baseUrl"],
  };
}

const OPENAI_TOKENS = { sent: "usage.prompt_tokens", received: "usage.completion_tokens", total: "usage.total_tokens" };
const INPUT_OUTPUT = { sent: "usage.input_tokens", received: "usage.output_tokens", total: "usage.total_tokens" };

/** One endpoint stands for each dialect that callers choose between. */
const ENDPOINTS: Partial<Record<DialectName, { path: string; token: EndpointConfiguration["token"] }>> = {
  "openai-chat": { path: "/v1/chat/completions", token: OPENAI_TOKENS },
  "openai-responses": { path: "/v1/responses", token: INPUT_OUTPUT },
  "openai-embeddings": { path: "/v1/embeddings", token: OPENAI_TOKENS },
  "anthropic-messages": { path: "/v1/messages", token: INPUT_OUTPUT },
  "gemini-generate": {
    path: "/v1beta/models/{model}:generateContent",
    token: {
      sent: "usageMetadata.promptTokenCount",
      received: "usageMetadata.candidatesTokenCount",
      total: "usageMetadata.totalTokenCount",
    },
  },
  "cohere-chat": {
    path: "/v2/chat",
    token: { sent: "usage.billed_units.input_tokens", received: "usage.billed_units.output_tokens", total: "" },
  },
};

function modelProvider(integration: string): ProviderDeclaration {
  const provider = findProvider(integration);
  if (!provider) throw new PlatformError("not_found", `${integration} is not a model provider.`);
  return provider;
}

async function getJson(
  provider: ProviderDeclaration,
  connection: ProviderConnection,
  upstreams: Upstreams,
  pathAndQuery: string,
): Promise<unknown> {
  const [path = "", query] = pathAndQuery.split("?");
  try {
    const { fixed, defaults } = requestFields(provider, connection, undefined);
    const upstream = upstreams.at(baseUrlOf({ provider, resolved: { model: { name: "", spec: {} }, connection } }));
    const { basePath } = upstream;
    const { status, text } = await wholeAnswer(upstream, {
      method: "GET",
      path: upstreamPath({ provider, basePath, path, query: query ? `?${query}` : "", model: "", config: {} }),
      fields: fixed + defaults.map(([name, value]) => `${name}: ${value}\r\n`).join(""),
      body: null,
    });
    if (status !== 200) throw new PlatformError("bad_gateway", `${provider.title} answered with status ${status}.`);
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof PlatformError) throw error;
    if (error instanceof SyntaxError)
      throw new PlatformError("bad_gateway", `${provider.title} did not answer with JSON.`, { cause: error });
    const failure = providerFailure(error, provider.title);
    throw new PlatformError(failure.status < 500 ? "bad_request" : "bad_gateway", failure.message, { cause: error });
  }
}

function wholeAnswer(upstream: Upstream, request: WireRequest): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    let status = 0;
    let call: RunningCall | null = null;
    const fail = (error: unknown): void => {
      clearTimeout(timer);
      call?.abort();
      reject(error);
    };
    const timer = setTimeout(() => fail(new AnswerTimeout("FIRST_BYTE_TIMEOUT")), LIST_TIMEOUT_MS);
    const sink: AnswerSink = {
      onHead(told) {
        status = told;
      },
      onData(chunk) {
        bytes += chunk.length;
        if (bytes <= LIST_MAX_BYTES) chunks.push(chunk);
        else fail(new GatewayError("PROVIDER_BAD_RESPONSE", "The provider's list is too long."));
      },
      onReadEnd() {},
      onEnd() {
        clearTimeout(timer);
        resolve({ status, text: Buffer.concat(chunks).toString("utf8") });
      },
      onError: fail,
    };
    call = upstream.send(request, sink);
  });
}
