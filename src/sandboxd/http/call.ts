/**
 * One HTTP exchange. Handlers take a Call, throw ApiError for failures and answer with the helpers below; headers that
 * every answer carries were set before the handler runs.
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Daemon } from "../daemon-context.ts";
import { ApiError } from "./api-error.ts";

export interface Call {
  req: IncomingMessage;
  res: ServerResponse;
  /** Path and query exactly as sent. */
  path: string;
  query: URLSearchParams;
  /** Groups of the route's pattern, undecoded. */
  params: string[];
  daemon: Daemon;
  /** Aborts when the client goes away. */
  signal: AbortSignal;
}

export type Handler = (call: Call) => void | Promise<void>;

/**
 * Largest JSON body, which is held in memory whole. File content can also be streamed, so only text sent as JSON has to
 * fit.
 */
export const JSON_BODY_BYTES_MAX = 64 * 1024 * 1024;
const REASON_CHARS_MAX = 200;

export async function readBody(call: Call, bytesMax = JSON_BODY_BYTES_MAX): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of call.req as AsyncIterable<Buffer>) {
    size += chunk.byteLength;
    if (size > bytesMax) throw new ApiError(413, `The body is larger than ${bytesMax} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Parses the JSON body. An absent body counts as an empty object; endpoints check their required fields. */
export async function readJson(call: Call): Promise<Record<string, unknown>> {
  const text = (await readBody(call)).toString("utf8");
  if (text.trim() === "") return {};
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    // The parser's message quotes the input, possibly all of it.
    const reason = (error instanceof Error ? error.message : String(error)).slice(0, REASON_CHARS_MAX);
    throw new ApiError(400, `The body is not JSON: ${reason}`);
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new ApiError(400, "The body must be a JSON object.");
  }
  return parsed as Record<string, unknown>;
}

type Kind = { string: string; boolean: boolean; integer: number };

/** A member of a JSON body. Absent and null give undefined; a wrong type is refused with 400. */
export function field<K extends keyof Kind>(body: Record<string, unknown>, name: string, kind: K): Kind[K] | undefined {
  const value = body[name];
  if (value === undefined || value === null) return undefined;
  const fits = kind === "integer" ? Number.isSafeInteger(value) : typeof value === kind;
  if (!fits) throw new ApiError(400, `"${name}" must be ${kind === "integer" ? "an integer" : `a ${kind}`}.`);
  return value as Kind[K];
}

export function requiredText(body: Record<string, unknown>, name: string): string {
  const value = field(body, name, "string");
  if (value === undefined || value === "") throw new ApiError(400, `"${name}" is required.`);
  return value;
}

export function integerQuery(call: Call, name: string, fallback: number): number {
  const text = call.query.get(name);
  if (text === null || text === "") return fallback;
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new ApiError(400, `The query parameter "${name}" must be an integer.`);
  return value;
}

export function booleanQuery(call: Call, name: string, fallback: boolean): boolean {
  const text = call.query.get(name)?.toLowerCase();
  if (text === undefined || text === "") return fallback;
  if (text === "true" || text === "1") return true;
  if (text === "false" || text === "0") return false;
  throw new ApiError(400, `The query parameter "${name}" must be true or false.`);
}

/** Path and query as sent; an absolute-form target loses its scheme and host. */
export const requestPath = (req: IncomingMessage): string => (req.url ?? "/").replace(/^https?:\/\/[^/?#]*/i, "");
