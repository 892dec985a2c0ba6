/**
 * Sends requests: credentials, time limits, retries. A request is sent again when no answer came or the server is
 * overloaded, and sending it twice does no harm; after a 401 once more with a new token.
 */
import type { Credential } from "../credentials/credential.ts";
import { urlBelow } from "./address.ts";
import { BerthError, errorOf } from "./errors.ts";
import { pause } from "./wait.ts";

/** Long, because a create may wait for a sandbox. */
export const TIMEOUT_MS = 120_000;
export const RETRIES = 2;
const BACKOFF_FIRST_MS = 200;
const BACKOFF_MOST_MS = 5_000;
/** A server that asks for a longer pause is told to the caller instead. */
const RETRY_AFTER_MOST_MS = 30_000;

/** Everything that `fetch` sends. */
export type WireBody = NonNullable<RequestInit["body"]>;

export interface WireRequest {
  method: string;
  /** The request does not leave this address. */
  address: string;
  /** Behind the address, with the leading slash. */
  path: string;
  headers?: Record<string, string>;
  body?: WireBody | undefined;
  /** Sending the request twice does no harm. */
  repeatable: boolean;
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
}

export interface TransportOptions {
  credential: Credential;
  fetch: typeof globalThis.fetch;
  retries: number;
  timeoutMs: number;
}

/** `read` makes the result of a successful answer, within the time limit. */
export type Send = <Result>(request: WireRequest, read: (response: Response) => Promise<Result>) => Promise<Result>;

export function createTransport(options: TransportOptions): Send {
  return async (request, read) => {
    const isStream = request.body instanceof ReadableStream;
    let bearer = await options.credential.bearer();
    for (let attempt = 0, renewed = false; ; attempt += 1) {
      try {
        return await once(request, bearer, read, options);
      } catch (error) {
        if (!(error instanceof BerthError) || isStream) throw error;
        if (error.status === 401 && !renewed) {
          renewed = true;
          const next = await options.credential.bearer(bearer);
          if (next === bearer) throw error;
          bearer = next;
        } else if (attempt < options.retries && mayRepeat(request, error)) {
          await pause(backoffMs(attempt, error), request.signal);
        } else throw error;
      }
    }
  };
}

function mayRepeat({ repeatable }: WireRequest, error: RefusedError): boolean {
  if ((error.retryAfterMs ?? 0) > RETRY_AFTER_MOST_MS) return false;
  // The server has refused the request before it did anything.
  if (error.code === "RATE_LIMITED" || error.code === "rate_limited" || error.code === "OVERLOADED") return true;
  return repeatable && (error.status === 0 ? error.code === "unreachable" : error.retryable);
}

function backoffMs(attempt: number, { retryAfterMs }: RefusedError): number {
  if (retryAfterMs !== undefined) return retryAfterMs;
  const most = Math.min(BACKOFF_FIRST_MS * 2 ** attempt, BACKOFF_MOST_MS);
  return most / 2 + Math.random() * (most / 2);
}

type RefusedError = BerthError & { retryAfterMs?: number };

async function once<Result>(
  request: WireRequest,
  bearer: string | null,
  read: (response: Response) => Promise<Result>,
  { fetch, timeoutMs: usualMs }: TransportOptions,
): Promise<Result> {
  const { method, address, path, headers, body, signal, timeoutMs = usualMs } = request;
  signal?.throwIfAborted();
  const aborter = new AbortController();
  const abort = (): void => aborter.abort(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    aborter.abort();
  }, timeoutMs);
  try {
    const response = await fetch(urlBelow(address, path), {
      method,
      headers: { ...(bearer === null ? {} : { "x-service-authorization": `Bearer ${bearer}` }), ...headers },
      // No redirects: credentials are sent only to the configured address.
      redirect: "manual",
      signal: aborter.signal,
      ...(body === undefined ? {} : { body }),
      ...(body instanceof ReadableStream ? { duplex: "half" } : {}),
    });
    if (response.ok) return await read(response);
    throw await refusal(response);
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    if (error instanceof BerthError) throw error;
    throw isLate ? late(address, timeoutMs) : unreachable(address, error);
  } finally {
    clearTimeout(timer);
    // Whoever reads a stream on listens to the signal itself (`linesOf`).
    signal?.removeEventListener("abort", abort);
  }
}

async function refusal(response: Response): Promise<RefusedError> {
  if (response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400))
    return new BerthError({
      status: response.status,
      code: "redirected",
      message: `The server redirects to ${response.headers.get("location") ?? "another address"}.`,
    });
  const error = errorOf(response.status, response.headers, await response.text());
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) ? Object.assign(error, { retryAfterMs: seconds * 1000 }) : error;
}

const originOf = (url: string): string => new URL(url).origin;

const late = (url: string, timeoutMs: number): BerthError =>
  new BerthError({ code: "timeout", message: `${originOf(url)} did not answer within ${timeoutMs} ms.` });

/** `fetch failed` says nothing; the reason is in its cause. */
function unreachable(url: string, error: unknown): BerthError {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const reason = cause instanceof Error ? ("code" in cause ? String(cause.code) : cause.message) : String(cause);
  return new BerthError({
    code: "unreachable",
    message: `${originOf(url)} cannot be reached (${reason}).`,
    retryable: true,
    cause: error,
  });
}
