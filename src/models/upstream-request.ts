/** The request of one attempt: the caller's call, translated for one provider. */
import { GatewayError } from "../contract/gateway-errors.ts";
import type { ModelPrices } from "../contract/model-prices.ts";
import { at, isRecord } from "../lib/untrusted-json.ts";
import { refuseBatchUpload, withBatchModel, withRequestModels } from "./batches/batch-input.ts";
import { asChat, type ClientCall } from "./client-call.ts";
import { isForm } from "./forms/multipart-form.ts";
import { withFormModel } from "./forms/multipart-model.ts";
import { editMembers } from "./json-members.ts";
import type { ProviderConnection, ResolvedModel } from "./model-records.ts";
import type { WireRequest } from "./provider-call.ts";
import { findProvider, providerOf } from "./providers/catalogue.ts";
import type { ChatTranslation } from "./providers/chat-translation.ts";
import type { Dialect } from "./providers/dialect.ts";
import { dialectOf } from "./providers/endpoints.ts";
import type { Front } from "./providers/fronts/front.ts";
import { frontFor } from "./providers/fronts/index.ts";
import type { ProviderDeclaration } from "./providers/provider.ts";
import { type RequestFields, requestFields, requestLines } from "./upstream-headers.ts";
import { upstreamPath } from "./upstream-path.ts";

export interface UpstreamCandidate {
  resolved: ResolvedModel;
  provider: ProviderDeclaration;
  /** The provider's name for the model. */
  model: string;
  /** Cache: sub-path without a query -> upstream path. */
  paths: Map<string, string>;
  /** Headers that all requests share; null until the first request. */
  fields: RequestFields | null;
  /** Token prices; undefined until first needed, null when unknown. */
  prices: ModelPrices | null | undefined;
}

export interface UpstreamRequest extends WireRequest {
  /** The API that the provider answers in. */
  dialect: Dialect;
  translation: ChatTranslation | null;
  /** The caller speaks another API than chat, and is answered in it. */
  front: FrontUse | null;
  /** The caller wants the usage chunk of a translated stream. */
  wantsUsage: boolean;
  /** A usage chunk was asked for that the caller did not ask for. */
  hidesUsage: boolean;
}

export interface FrontUse {
  front: Front;
  request: Record<string, unknown>;
  /** The call that is sent and metered instead. */
  call: ClientCall;
}

/** A model is resolved once and asked many times. */
const candidates = new WeakMap<ResolvedModel, UpstreamCandidate>();

export function candidateOf(resolved: ResolvedModel): UpstreamCandidate {
  const known = candidates.get(resolved);
  if (known) return known;
  const { spec, name } = resolved.model;
  const provider = providerOf(spec.runtime?.type, resolved.connection?.integration);
  const candidate: UpstreamCandidate = {
    resolved,
    provider,
    model: spec.runtime?.model || name,
    paths: new Map(),
    fields: null,
    prices: resolved.prices,
  };
  candidates.set(resolved, candidate);
  return candidate;
}

/** Nothing that would end the line it is written on. */
const REQUEST_TARGET = /^\/[\x21-\x7e\x80-\xff]*$/;
/** Callers use a few endpoints of a model; who tries out more is served without the memory. */
const PATHS_MAX = 32;

function pathOf(call: ClientCall, { provider, model, resolved, paths }: UpstreamCandidate, basePath: string): string {
  const { path, query } = call;
  const known = query === "" ? paths.get(path) : undefined;
  if (known !== undefined) return known;
  const found = upstreamPath({ provider, basePath, path, query, model, config: resolved.connection?.config ?? {} });
  if (!REQUEST_TARGET.test(found)) throw new GatewayError("BAD_REQUEST", "The path is not one that can be sent.");
  if (query === "" && paths.size < PATHS_MAX) paths.set(path, found);
  return found;
}

/** A fallback is of use only if the caller can be answered in its own dialect. */
export const speaks = (provider: ProviderDeclaration, dialect: Dialect): boolean =>
  provider.dialects.includes(dialect.name) ||
  (dialect.name === "openai-chat" && provider.chat !== undefined) ||
  frontFor(dialect.name, provider) !== null;

export function upstreamRequest(call: ClientCall, candidate: UpstreamCandidate, basePath: string): UpstreamRequest {
  const { provider, model, resolved } = candidate;
  const config = resolved.connection?.config ?? {};
  const front = call.method === "POST" ? frontFor(call.dialect.name, provider, config) : null;
  if (front) {
    const { request, call: chat } = asChat(call, front);
    return { ...upstreamRequest(chat, candidate, basePath), front: { front, request, call: chat } };
  }
  candidate.fields ??= requestFields(provider, resolved.connection, resolved.model.spec.runtime?.organization);
  const fields = requestLines(call, candidate.fields);
  const translation =
    call.dialect.name === "openai-chat" && !provider.dialects.includes("openai-chat") ? provider.chat : null;
  if (translation) {
    const chat = call.chat();
    const [path = "", query] = (chat.stream ? translation.streamPath : translation.path).split("?");
    return {
      method: "POST",
      path: upstreamPath({ provider, basePath, path, query: query ? `?${query}` : "", model, config }),
      fields,
      body: Buffer.from(JSON.stringify(translation.toProvider(chat, model))),
      dialect: dialectOf(path),
      translation,
      front: null,
      wantsUsage: chat.stream_options?.include_usage === true,
      hidesUsage: false,
    };
  }
  const hidesUsage = mustAskForUsage(call, provider, resolved.connection);
  return {
    method: call.method,
    path: pathOf(call, candidate, basePath),
    fields,
    body: call.body.length === 0 ? null : editedBody(call, candidate, hidesUsage),
    dialect: call.dialect,
    translation: null,
    front: null,
    wantsUsage: false,
    hidesUsage,
  };
}

/** Streams of this API count nothing unless asked; metering asks, and the answer is hidden from who did not. */
function mustAskForUsage(
  call: ClientCall,
  provider: ProviderDeclaration,
  connection: ProviderConnection | null,
): boolean {
  const { name } = call.dialect;
  if (!call.stream || provider.streamUsage !== "ask" || (name !== "openai-chat" && name !== "openai-completions"))
    return false;
  // For the odd server that refuses the member.
  if (connection?.config.streamUsage === "off") return false;
  return at(call.member("stream_options"), "include_usage") !== true;
}

function editedBody(call: ClientCall, { provider, model }: UpstreamCandidate, asksUsage: boolean): Buffer {
  if (isForm(call.contentType)) return withBatchModel(withFormModel(call.body, call.contentType, model), call, model);
  if (!call.members) return call.body;
  refuseBatchUpload(call);
  if (call.dialect.model === "requests") return withRequestModels(call, model);
  const edits: Record<string, string | null> = {};
  const where = call.dialect.model;
  if (where === "body" || (where === "body-if-present" && call.members.some((member) => member.key === "model")))
    edits.model = JSON.stringify(model);
  if (asksUsage) {
    const options = call.member("stream_options");
    edits.stream_options = JSON.stringify({ ...(isRecord(options) ? options : {}), include_usage: true });
  }
  if (call.dialect.name === "openai-chat" && provider.chatMembers) {
    for (const [member, instead] of Object.entries(provider.chatMembers)) {
      const value = call.member(member);
      if (value === undefined) continue;
      edits[member] = null;
      if (instead !== null && call.member(instead) === undefined) edits[instead] = JSON.stringify(value);
    }
  }
  return editMembers(call.body, call.members, edits);
}

/** The connection's address, else the one the model names, else the provider's own. */
export function baseUrlOf({
  provider,
  resolved,
}: Pick<UpstreamCandidate, "provider"> & { resolved: Pick<ResolvedModel, "model" | "connection"> }): string {
  const { connection, model } = resolved;
  const endpoint = model.spec.runtime?.endpointName;
  if (connection?.config.baseUrl) return connection.config.baseUrl;
  if (connection) guardKey(connection, provider);
  if (endpoint && IS_URL.test(endpoint)) return ownEndpoint(endpoint, provider);
  if (provider.baseUrl?.includes("{endpointName}")) {
    const name = endpoint || connection?.config.endpointName || "";
    if (HOST_LABEL.test(name)) return provider.baseUrl.replace("{endpointName}", name);
  } else if (provider.baseUrl) {
    return provider.baseUrl;
  }
  throw notConfigured(
    `${provider.title} has no address: set spec.config.baseUrl of the model's connection${provider.baseUrl ? ", or spec.runtime.endpointName" : ""}.`,
  );
}

const IS_URL = /^https?:\/\//i;
const HOST_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;

/** Authors of models may not read keys, so the key of a provider is sent only to that provider. */
function guardKey({ name, integration, secret }: ProviderConnection, provider: ProviderDeclaration): void {
  const owner = findProvider(integration);
  if (!owner || owner === provider || Object.keys(secret).length === 0) return;
  throw notConfigured(`Connection ${name} holds a key of ${owner.title}, which is not sent to ${provider.title}.`);
}

/** Any other address is an admin's to choose: a model would lead around the walls of the network, with a key or without. */
function ownEndpoint(text: string, { title, endpointHosts = [] }: ProviderDeclaration): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol === "https:" && endpointHosts.some((end) => url.hostname.endsWith(end))) return text;
  throw notConfigured(
    `spec.runtime.endpointName of the model is not an address of ${title}: set spec.config.baseUrl of its connection instead.`,
  );
}

const notConfigured = (message: string): GatewayError => new GatewayError("PROVIDER_NOT_CONFIGURED", message);
