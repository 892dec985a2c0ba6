/**
 * The typed client: a call takes an operation and its input, so there is no code per kind. It runs wherever `fetch`
 * exists, browsers included.
 *
 *   const client = createClient({ url: "http://127.0.0.1:8080", apiKey, workspace: "main" });
 *   const made = await client.call(workspaceCreate, { body: { name: "dev" } });
 *   for await (const item of client.items(driveList)) …
 */

import type { z } from "zod";
import type { ServerEvent } from "../contract/event-stream.ts";
import type { Operation } from "../contract/operation.ts";
import { VERSIONS } from "../contract/versions/version.ts";
import { readWarnings, STRICT_HANDLING } from "../contract/warnings.ts";
import { ApiError, errorFromAnswer } from "./api-error.ts";
import { readEvents } from "./read-events.ts";

/** Default timeout of a call. Long, because a create may wait for a sandbox. */
const TIMEOUT_MS = 120_000;
/** Longest life of a stream of events: the largest timeout there is. */
const STREAM_MS_MAX = 2 ** 31 - 1;
/** Longest response; no record or page of the platform is larger. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** The largest page size of any list; lists with a lower limit clamp it. */
const PAGE_LIMIT = 200;

const NEWEST_VERSION = VERSIONS[VERSIONS.length - 1] ?? "";

export interface ClientOptions {
  /** Address of the server, with or without `/v0`. */
  url: string;
  /** A key or token. A function is called before every request, for tokens that are renewed. */
  apiKey?: string | (() => Promise<string>) | null;
  workspace?: string | null;
  fetch?: Fetch;
  timeoutMs?: number;
  /** Asks the server to refuse unknown members and parameters instead of warning. */
  strict?: boolean;
  /** Called for each member or parameter that the server accepted but ignores. */
  onWarning?(text: string): void;
}

/** What the client uses of `fetch`; the platform's own `fetch` fits. */
export type Fetch = (target: string, init: RequestInit) => Promise<FetchAnswer>;

export interface FetchAnswer {
  status: number;
  headers: AnswerHeaders;
  body: AsyncIterable<Uint8Array> | null;
}

export type AnswerHeaders = Pick<Headers, "get">;

export type QueryValue = string | number | boolean | undefined;

export interface CallInput {
  params?: Record<string, string>;
  query?: Record<string, QueryValue>;
  /** JSON, or the bytes for an operation that takes a stream. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Overrides the default timeout of 120,000 ms. */
  timeoutMs?: number;
}

export interface Answer<Body> {
  status: number;
  headers: AnswerHeaders;
  body: Body;
}

/** What a list lists: an array, or a page of it. */
type ItemOf<List> = List extends readonly (infer Item)[]
  ? Item
  : List extends { data: readonly (infer Item)[] }
    ? Item
    : unknown;

export interface Client {
  readonly url: string;
  /** Returns the response body; throws ApiError for anything but success. */
  call<Query extends z.ZodObject, Body extends z.ZodType, Response extends z.ZodType>(
    operation: Operation<Query, Body, Response>,
    input?: CallInput,
  ): Promise<z.output<Response>>;
  /** Like `call`, with status and headers. */
  send<Query extends z.ZodObject, Body extends z.ZodType, Response extends z.ZodType>(
    operation: Operation<Query, Body, Response>,
    input?: CallInput,
  ): Promise<Answer<z.output<Response>>>;
  /** Yields every item of a list, page after page. */
  items<Query extends z.ZodObject, Body extends z.ZodType, Response extends z.ZodType>(
    operation: Operation<Query, Body, Response>,
    input?: CallInput,
  ): AsyncGenerator<ItemOf<z.output<Response>>, void>;
  /** Yields the events of an operation that answers with a stream, until it ends or the signal is aborted. */
  events(operation: Operation, input?: CallInput): AsyncGenerator<ServerEvent, void>;
  /** Yields the answer of an operation that answers with bytes. */
  bytes(operation: Operation, input?: CallInput): AsyncGenerator<Uint8Array, void>;
}

export function createClient(options: ClientOptions): Client {
  const url = normalizeUrl(options.url);
  const send = async (operation: Operation, input: CallInput = {}): Promise<Answer<unknown>> => {
    const response = await request(url, operation, input, options);
    if (options.onWarning) for (const text of readWarnings(response.headers.get("warning"))) options.onWarning(text);
    const body = await readJson(response, url);
    if (response.status < 200 || response.status > 299) throw errorFromAnswer(response.status, response.headers, body);
    return { status: response.status, headers: response.headers, body };
  };
  return {
    url,
    send: send as Client["send"],
    call: (async (operation: Operation, input?: CallInput) => (await send(operation, input)).body) as Client["call"],
    items: ((operation: Operation, input?: CallInput) => items(send, operation, input)) as Client["items"],
    async *events(operation, input = {}) {
      const response = await request(url, operation, { ...input, timeoutMs: STREAM_MS_MAX }, options);
      if (response.status === 200) return yield* readEvents(response.body ?? []);
      throw errorFromAnswer(response.status, response.headers, await readJson(response, url));
    },
    async *bytes(operation, input = {}) {
      const response = await request(url, operation, { timeoutMs: STREAM_MS_MAX, ...input }, options);
      if (response.status === 200) return yield* response.body ?? [];
      throw errorFromAnswer(response.status, response.headers, await readJson(response, url));
    },
  };
}

/** `http://host/v0/` and `http://host` are the same server. */
export const normalizeUrl = (url: string): string => url.replace(/\/+$/, "").replace(/\/v0$/, "");

async function* items(
  send: (operation: Operation, input: CallInput) => Promise<Answer<unknown>>,
  operation: Operation,
  input: CallInput = {},
): AsyncGenerator<unknown, void> {
  const seen = new Set<string>();
  let query = operation.paged ? { limit: PAGE_LIMIT, ...input.query } : input.query;
  for (;;) {
    const { body } = await send(operation, query ? { ...input, query } : input);
    // A list is a page or a bare array; an empty list may be null.
    const page = Array.isArray(body)
      ? { data: body }
      : ((body ?? {}) as { data?: unknown[]; meta?: { nextCursor?: string } });
    yield* page.data ?? [];
    const cursor = ("meta" in page && page.meta?.nextCursor) || null;
    if (cursor === null) return;
    if (seen.has(cursor))
      throw new ApiError({
        status: 502,
        code: "repeated_cursor",
        message: "The server gave the same page twice; the listing was stopped.",
      });
    seen.add(cursor);
    query = { ...query, cursor };
  }
}

async function request(
  url: string,
  operation: Operation,
  input: CallInput,
  { apiKey, workspace, strict, fetch = globalThis.fetch, timeoutMs: patienceMs = TIMEOUT_MS }: ClientOptions,
): Promise<FetchAnswer> {
  const { timeoutMs = patienceMs } = input;
  const target = url + pathOf(operation, input);
  const bearer = typeof apiKey === "function" ? await apiKey() : apiKey;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    return await fetch(target, {
      method: operation.method,
      headers: {
        accept: operation.events ? "text/event-stream" : (operation.bytes ?? "application/json"),
        "service-version": NEWEST_VERSION,
        ...(bearer ? { authorization: `Bearer ${bearer}` } : {}),
        ...(workspace ? { "x-service-workspace": workspace } : {}),
        ...(strict ? { [STRICT_HANDLING.name]: STRICT_HANDLING.value } : {}),
        ...(input.body === undefined ? {} : { "content-type": operation.stream ?? "application/json" }),
        ...input.headers,
      },
      ...bodyOf(operation, input),
      // No redirects: credentials are sent only to the configured address.
      redirect: "manual",
      signal: input.signal ? AbortSignal.any([input.signal, timeout]) : timeout,
    });
  } catch (error) {
    if (input.signal?.aborted) throw error;
    throw unreachable(url, error, timeout.aborted ? timeoutMs : null);
  }
}

function bodyOf({ stream }: Operation, { body }: CallInput): RequestInit {
  if (body === undefined) return {};
  return stream ? ({ body, duplex: "half" } as RequestInit) : { body: JSON.stringify(body) };
}

function pathOf(operation: Operation, { params = {}, query = {} }: CallInput): string {
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => segment(operation, name, params[name] ?? ""));
  const given = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value !== undefined) given.set(key, String(value));
  return `/v0${path}${given.size === 0 ? "" : `?${given}`}`;
}

/** Refuses "." and ".." as a segment: fetch would resolve them, encoded or not, and reach another path. */
function segment(operation: Operation, name: string, value: string): string {
  if (value !== "" && value !== "." && value !== "..") return encodeURIComponent(value);
  throw new ApiError({
    status: 400,
    code: "invalid_parameter",
    message: `${operation.id} needs the parameter ${name}; '${value}' is not a name.`,
  });
}

async function readJson(response: FetchAnswer, url: string): Promise<unknown> {
  if (response.status >= 300 && response.status < 400) {
    const location = response.headers.get("location");
    throw new ApiError({
      status: response.status,
      code: "redirected",
      message: `${url} redirects${location ? ` to ${location}` : ""}. Use the address of the server itself.`,
    });
  }
  const text = await readText(response, url);
  if (text === "") return null;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new ApiError({
      status: response.status,
      code: "not_json",
      message: `${url} answered ${response.status} with ${response.headers.get("content-type") ?? "something"} instead of JSON. Is it a Berth server?`,
    });
  }
}

async function readText(response: FetchAnswer, url: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response.body ?? []) {
      bytes += chunk.byteLength;
      if (bytes > ANSWER_BYTES_MAX)
        throw new ApiError({
          status: response.status,
          code: "answer_too_large",
          message: `${url} sent more than ${ANSWER_BYTES_MAX} bytes.`,
        });
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof ApiError ? error : unreachable(url, error, null);
  }
  return new TextDecoder().decode(concat(chunks, bytes));
}

function concat(chunks: readonly Uint8Array[], bytes: number): Uint8Array {
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

function unreachable(url: string, error: unknown, timedOutMs: number | null): ApiError {
  const cause = (error as { cause?: { code?: string; message?: string } }).cause;
  const why =
    timedOutMs === null
      ? (cause?.code ?? cause?.message ?? (error as Error).message)
      : `nothing after ${timedOutMs} ms`;
  return new ApiError({ status: 0, code: "unreachable", message: `${url} does not answer (${why}).`, cause: error });
}
