/** A caller's request as the engine sees it: read once, sent as often as there are attempts. */
import { GatewayError } from "../contract/gateway-errors.ts";
import type { Downstream } from "../http/downstream.ts";
import { at, isRecord, itemsOf } from "../lib/untrusted-json.ts";
import { createsBatch } from "./batches/batch-mark.ts";
import { isForm } from "./forms/multipart-form.ts";
import { eachString, type JsonMember, memberValue, topLevelMembers } from "./json-members.ts";
import type { Dialect } from "./providers/dialect.ts";
import { dialectOf } from "./providers/endpoints.ts";
import type { Front } from "./providers/fronts/front.ts";
import { type ChatRequest, parseChatRequest } from "./providers/openai/chat-request.ts";
import { openaiChat } from "./providers/openai/dialects.ts";
import type { ProviderDeclaration } from "./providers/provider.ts";
import { TOKENS_MAX } from "./providers/token-usage.ts";
import { isBelowRealtime } from "./realtime/endpoint.ts";
import { hasDotSegment } from "./upstream-path.ts";

export interface ClientCall {
  method: string;
  /** Without the query; {model} stands for the provider's model name where a default path has it. */
  path: string;
  /** With the question mark, or empty. */
  query: string;
  /** The headers as sent, names and values alternating. */
  rawHeaders: readonly string[];
  contentType: string;
  body: Buffer;
  /** The body's members when it is a JSON object. */
  members: JsonMember[] | null;
  /** The API that the caller uses and is answered in. */
  dialect: Dialect;
  stream: boolean;
  /** The parsed chat request, read when the first attempt needs it. */
  chat(): ChatRequest;
  member(key: string): unknown;
}

export function describeCall(
  down: Downstream,
  subPath: string,
  body: Buffer,
  provider: ProviderDeclaration,
): ClientCall {
  const mark = subPath.indexOf("?");
  const query = mark < 0 ? "" : subPath.slice(mark);
  const own = mark < 0 ? subPath : subPath.slice(0, mark);
  if (hasDotSegment(own)) throw new GatewayError("BAD_REQUEST", "The path climbs out of the model's address.");
  if (isBelowRealtime(own)) throw new GatewayError("BAD_REQUEST", REALTIME_BY_SOCKET);
  const contentType = down.header("content-type") ?? "";
  const { method } = down;
  const isDefault = own === "" || own === "/";
  if (isDefault && method !== "POST") {
    throw new GatewayError("METHOD_NOT_ALLOWED", "A model is queried with POST.", { headers: { allow: "POST" } });
  }
  const hasForm = isForm(contentType);
  const members = hasForm ? null : topLevelMembers(body);
  const chatBody = isDefault && provider.chatMember && members?.some((member) => member.key === provider.chatMember);
  const path = isDefault ? provider.defaultPath : own;
  const dialect = chatBody ? openaiChat : dialectOf(path, method);
  if (method === "POST" && !members && !hasForm && mustBeObject(dialect, path, contentType, body)) {
    throw new GatewayError("BAD_REQUEST", "The body must be a JSON object.");
  }
  const read = readerOf(body, members);
  return {
    method,
    path: chatBody ? "/v1/chat/completions" : path,
    query,
    rawHeaders: down.rawHeaders,
    contentType,
    dialect,
    stream: read.member("stream") === true || path.endsWith(":streamGenerateContent"),
    ...read,
  };
}

/** Keys and calls that a provider gives out for realtime would lead past caps and ledger. */
const REALTIME_BY_SOCKET =
  "Realtime sessions are opened here as WebSockets at /v1/realtime, with a key of the platform.";

/** Also where the model is found in the body only if it is there: JSON that is not read here might be read elsewhere. */
const mustBeObject = ({ model }: Dialect, path: string, contentType: string, body: Buffer): boolean =>
  model === "body" ||
  model === "requests" ||
  createsBatch({ method: "POST", path }) ||
  (body.length > 0 && /json/i.test(contentType) && !/^\s*\[/.test(body.toString("latin1", 0, LOOK_BYTES)));

const LOOK_BYTES = 64;

/** The same call with another JSON body. */
export const withBody = (call: ClientCall, body: Buffer): ClientCall => ({
  ...call,
  ...readerOf(body, topLevelMembers(body)),
});

function readerOf(
  body: Buffer,
  members: JsonMember[] | null,
): Pick<ClientCall, "body" | "members" | "chat" | "member"> {
  let chat: ChatRequest | null = null;
  return {
    body,
    members,
    chat() {
      chat ??= parseChatRequest(body);
      return chat;
    },
    member: (key) => (members ? memberValue(body, members, key) : undefined),
  };
}

/** What a caller of another API asks, as OpenAI chat: made once, and asked of every model that has chat alone. */
export function asChat(call: ClientCall, front: Front): FrontedCall {
  const known = fronted.get(call);
  if (known) return known;
  const request: unknown = parsed(call.body);
  if (!isRecord(request)) throw new GatewayError("BAD_REQUEST", "The body must be a JSON object.");
  const chat = front.toChat(request);
  const made: FrontedCall = {
    request,
    chat,
    call: {
      ...withBody(call, Buffer.from(JSON.stringify(chat))),
      path: "/v1/chat/completions",
      query: "",
      contentType: "application/json",
      dialect: openaiChat,
    },
  };
  fronted.set(call, made);
  return made;
}

export interface FrontedCall {
  /** The request as the caller wrote it. */
  request: Record<string, unknown>;
  /** The body of `call`. */
  chat: Record<string, unknown>;
  call: ClientCall;
}

const fronted = new WeakMap<ClientCall, FrontedCall>();

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (cause) {
    throw new GatewayError("BAD_REQUEST", "The body is not valid JSON.", { cause });
  }
}

/** Bytes of text per token: few, so that a reservation is rather too large than too small. */
const RESERVED_BYTES_PER_TOKEN = 3;
/** Images and files sent inline are not text; what they cost depends on their size in pixels and pages. */
const INLINE_BLOB_MIN_BYTES = 1024;
const INLINE_BLOB_TOKENS = 1024;
const BASE64_LOOK_BYTES = 256;

/** Tokens the input will count at most, roughly. */
export function estimateInputTokens(call: ClientCall, bytesPerToken = RESERVED_BYTES_PER_TOKEN): number {
  let textBytes = call.body.length;
  let blobs = 0;
  if (call.members && call.body.length > INLINE_BLOB_MIN_BYTES) {
    eachString(call.body, (start, end) => {
      if (end - start < INLINE_BLOB_MIN_BYTES || !looksLikeBlob(call.body, start)) return;
      textBytes -= end - start;
      blobs += 1;
    });
  }
  return Math.ceil(textBytes / bytesPerToken) + blobs * INLINE_BLOB_TOKENS;
}

/** Base64 and data URLs have no space and no letter outside ASCII for as far as one looks. */
const looksLikeBlob = (json: Buffer, start: number): boolean =>
  /^[\w+/=:;,.-]+$/.test(json.toString("latin1", start, start + BASE64_LOOK_BYTES));

/** The most the request may generate; null when it does not say, zero when the endpoint generates nothing. */
export function outputLimit(call: ClientCall): number | null {
  if (!call.dialect.generates) return 0;
  if (call.dialect.model === "requests") return batchLimit(call);
  // Of several the largest: which of them a provider goes by is its own affair.
  let most: number | null = null;
  for (const [first, ...rest] of call.dialect.outputLimits) {
    let value = call.member(first ?? "");
    for (const key of rest) value = at(value, key);
    if (typeof value === "number" && value >= 0) most = Math.max(most ?? 0, value);
  }
  return most === null ? null : Math.min(Math.ceil(most * choicesOf(call)), TOKENS_MAX);
}

/** A request without a limit counts none: the provider refuses it. */
function batchLimit(call: ClientCall): number {
  const limits = itemsOf(call.member("requests")).map((request) => at(at(request, "params"), "max_tokens"));
  const sum = limits.reduce<number>((all, each) => all + (typeof each === "number" && each > 0 ? each : 0), 0);
  return Math.min(Math.ceil(sum), TOKENS_MAX);
}

function choicesOf(call: ClientCall): number {
  const n = call.dialect.name === "openai-chat" || call.dialect.name === "openai-completions" ? call.member("n") : 1;
  return typeof n === "number" && n > 1 ? n : 1;
}
