/**
 * The management edge for plain requests, read straight from the socket: Node's request and response objects and the
 * framework on top of them cost more than answering does. It takes what can be read in one way only: the path of a
 * known operation without escapes, each header once, a moderate JSON body. Everything else goes the framework's way, so
 * this adds speed and no behaviour.
 */

import type { IncomingHttpHeaders } from "node:http";
import { parse as parseQueryText } from "node:querystring";
import type { Duplex } from "node:stream";
import { PlatformError } from "../contract/errors.ts";
import type { PlainHead } from "../http/http1/request-head.ts";
import type { Implementation } from "../kinds/port.ts";
import { STATUS_CODES } from "../lib/network/node-http.ts";
import { clientAddress, type Proxies } from "../lib/network/proxies.ts";
import type { Soon } from "../lib/soon.ts";
import { atTurnEnd } from "../lib/turn-end.ts";
import { API_PREFIX, createOperationRoutes, type Found } from "./operation-routes.ts";
import { type ApiRequest, answer, type PipelineDeps, readerOf, requireRoom } from "./pipeline.ts";
import { requestIdOf } from "./request-id.ts";
import type { RequestLog } from "./request-log.ts";

export interface PlainExchange {
  readonly socket: Duplex;
  readonly remoteAddress: string;
  /** False for a connection from inside a workload, whose `remoteAddress` stands for this machine. */
  readonly fromNetwork: boolean;
  readonly workload: string | undefined;
  /** Whether the client came over TLS. */
  readonly secure: boolean;
  attach(events: PlainEvents): void;
  readBody(): void;
  /** The whole answer at once. */
  answer(status: number, reason: string, headers: readonly string[], body: string): void;
}

export interface PlainEvents {
  onRequestBody(chunk: Buffer): void;
  onRequestEnd(): void;
  onClientDrain(): void;
  onClientGone(): void;
}

/** Returns null for requests that the framework must serve, otherwise the function that serves the request. */
export type PlainEdge = (head: PlainHead) => ((exchange: PlainExchange) => Promise<void>) | null;

export interface PlainEdgeOptions extends PipelineDeps {
  implementations: readonly Implementation[];
  requestLog: RequestLog;
  /** As the framework reads it, so that both ways refuse the same. */
  parseJson(text: string): unknown;
  proxies: Proxies;
  bodyWaitMs?: number;
  /** See ApiOptions. */
  strictTransport?(): boolean;
}

/** One year, for this host only: names below it may be workloads. */
export const STRICT_TRANSPORT = "max-age=31536000";

/** Bytes of a body served here; a larger one gains nothing from this path. */
const BODY_BYTES_MAX = 64 * 1024;
const TARGET_LENGTH_MAX = 1000;
/** Time limit of the body, against clients that send it slowly on purpose. */
const BODY_WAIT_MS = 60_000;
const JSON_TYPE = /^application\/json(?:;|$)/;

export function createPlainEdge(options: PlainEdgeOptions): PlainEdge {
  const route = createOperationRoutes(
    options.implementations.filter(
      ({ operation, node }) => !operation.stream && !operation.events && !operation.bytes && !node,
    ),
  );
  const planOf = (head: PlainHead): Plan | null => {
    const { target } = head;
    if (!target.startsWith(`${API_PREFIX}/`) || target.length > TARGET_LENGTH_MAX || target.includes("%")) return null;
    const mark = target.indexOf("?");
    const found = route(head.method, target.slice(API_PREFIX.length, mark < 0 ? undefined : mark));
    if (found === null) return null;
    const headers = headersOf(head);
    if (headers === null || !isPlainBody(head, headers, found)) return null;
    const query = mark < 0 ? {} : parseQueryText(target.slice(mark + 1), "&", "=", { maxKeys: 0 });
    return { found, headers, query, length: head.contentLength ?? 0, notes: {} };
  };
  // Clients that poll or write in a loop repeat the same head, so its parsed plan is cached.
  const plans = new WeakMap<PlainHead, Plan>();
  return (head) => {
    const known = head.isRepeated ? plans.get(head) : undefined;
    const plan = known ?? planOf(head);
    if (plan === null) return null;
    if (head.isRepeated && !known) plans.set(head, frozen(plan));
    return (exchange) => serve(plan, exchange, options);
  };
}

/** Returns null for a repeated header: Node decides how its values are joined. */
function headersOf({ names, rawHeaders }: PlainHead): IncomingHttpHeaders | null {
  const headers: Record<string, string> = {};
  for (let at = 0; at < names.length; at += 1) {
    const name = names[at] as string;
    if (headers[name] !== undefined) return null;
    headers[name] = rawHeaders[2 * at + 1] as string;
  }
  return headers;
}

function isPlainBody({ method, contentLength }: PlainHead, headers: IncomingHttpHeaders, { implementation }: Found) {
  const type = headers["content-type"];
  if (type !== undefined && !JSON_TYPE.test(type)) return false;
  if (contentLength === null || contentLength === 0) return true;
  const max = Math.min(implementation.operation.bodyBytesMax ?? BODY_BYTES_MAX, BODY_BYTES_MAX);
  return type !== undefined && contentLength <= max && method !== "GET" && method !== "DELETE";
}

/** The parsed head. */
interface Plan {
  readonly found: Found;
  readonly headers: IncomingHttpHeaders;
  readonly query: unknown;
  readonly length: number;
  readonly notes: ApiRequest["notes"];
}

/** The plan is shared by many requests, so its parts are frozen. */
function frozen(plan: Plan): Plan {
  for (const part of [plan.headers, plan.query, plan.found.params]) Object.freeze(part);
  return plan;
}

async function serve(plan: Plan, exchange: PlainExchange, options: PlainEdgeOptions): Promise<void> {
  const { headers, query, length, notes } = plan;
  const { implementation, params } = plan.found;
  const { operation } = implementation;
  const started = performance.now();
  const requestId = requestIdOf(headers["x-request-id"]);
  const peer = exchange.fromNetwork ? exchange.remoteAddress : undefined;
  const sourceAddress = clientAddress(peer, headers["x-forwarded-for"], options.proxies, exchange.workload);
  let status: number;
  let text: string | null;
  let extra: Record<string, string>;
  let reader: string | null = null;
  const refuse = (error: unknown): void => {
    const route = `${API_PREFIX}${operation.path}`;
    const refusal = options.requestLog.refusal(error, { requestId, method: operation.method, route });
    ({ status, headers: extra } = refusal);
    text = JSON.stringify(refusal.body);
  };
  try {
    let sent: Soon<string> | undefined;
    if (length > 0) sent = bodyOf(exchange, length, options.bodyWaitMs);
    if (sent instanceof Promise) sent = await sent;
    const body = sent === undefined ? undefined : options.parseJson(sent);
    const request = { headers, params, query, body, stream: null, requestId, sourceAddress, notes };
    const result = await answer(implementation, request, options);
    ({ status, body: text, headers: extra } = result);
    reader = readerOf(result);
  } catch (error) {
    refuse(error);
  }
  const { promise, resolve } = Promise.withResolvers<void>();
  atTurnEnd(() => {
    try {
      // Many requests of one caller may have been admitted together. What was changed is always told.
      if (!operation.mutates) requireRoom(options.unread, reader);
    } catch (error) {
      refuse(error);
    }
    const fields = ["x-request-id", requestId];
    if (exchange.secure && options.strictTransport?.()) fields.push("strict-transport-security", STRICT_TRANSPORT);
    for (const name in extra) fields.push(name, extra[name] as string);
    if (text !== null) fields.push("content-type", "application/json; charset=utf-8");
    exchange.answer(status, STATUS_CODES[status] ?? "", fields, text ?? "");
    if (reader !== null) options.unread.written(exchange.socket, reader);
    const ms = performance.now() - started;
    options.requestLog.answered({ requestId, operation: operation.id, status, ms, ip: sourceAddress });
    resolve();
  });
  await promise;
}

/** The body has nearly always arrived with the head, so it is returned without a promise. */
function bodyOf(exchange: PlainExchange, length: number, waitMs = BODY_WAIT_MS): Soon<string> {
  const chunks: Buffer[] = [];
  let text = null as string | null;
  let complete = (whole: string): void => {
    text = whole;
  };
  let fail = (_error: PlatformError): void => {};
  exchange.attach({
    onRequestBody: (chunk) => chunks.push(chunk),
    onRequestEnd: () => complete((chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, length))?.toString() ?? ""),
    onClientDrain: () => {},
    onClientGone: () => fail(new PlatformError("bad_request", "The client left before its body was complete.")),
  });
  exchange.readBody();
  if (text !== null) return text;
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const late = new PlatformError("bad_request", `The body did not arrive within ${waitMs / 1000} s.`);
  const timer = setTimeout(() => reject(late), waitMs);
  complete = (whole) => {
    clearTimeout(timer);
    resolve(whole);
  };
  fail = (error) => {
    clearTimeout(timer);
    reject(error);
  };
  return promise;
}
