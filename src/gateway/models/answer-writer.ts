/** How an answer, or the gateway's own refusal, is put on the caller's connection. */
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { asGatewayError, type GatewayError } from "../../contract/gateway-errors.ts";
import type { AnswerContext } from "../providers/chat-translation.ts";
import type { StreamFailure } from "../providers/dialect.ts";
import {
  type BodyPipe,
  eventPipe,
  jsonPipe,
  opaquePipe,
  translatedEventPipe,
  translatedJsonPipe,
} from "./body-pipes.ts";
import type { OpenedBody } from "./exchange.ts";
import { type HeaderBag, responseHeaders } from "./upstream-headers.ts";
import type { UpstreamRequest } from "./upstream-request.ts";
import type { UsageMeter } from "./usage-meter.ts";

/** Short answers go out in one write with their head; longer ones are not held back. */
const WHOLE_MAX_BYTES = 256 * 1024;
const EVENT_STREAM = "text/event-stream; charset=utf-8";

export interface OpenContext extends AnswerContext {
  request: UpstreamRequest;
  meter: UsageMeter;
  res: ServerResponse;
  /** Headers of the platform's own. */
  labels: HeaderBag;
}

export function openAnswer(status: number, headers: IncomingHttpHeaders, context: OpenContext): OpenedBody {
  const { request, meter, res, labels } = context;
  const type = String(headers["content-type"] ?? "");
  const bag = Object.assign(responseHeaders(headers), labels);
  const events = type.startsWith("text/event-stream");
  if (request.translation) bag["content-type"] = events ? EVENT_STREAM : "application/json";
  const bodiless = request.method === "HEAD" || status === 204 || status === 304;
  return {
    pipe: pipeFor(status, type, events, context, meter),
    sent: events ? "events" : request.translation || isShort(headers) ? "whole" : "chunks",
    writeHead(bytes) {
      if (bytes !== null && !bodiless) bag["content-length"] = String(bytes);
      res.writeHead(status, bag);
    },
  };
}

function pipeFor(status: number, type: string, events: boolean, context: OpenContext, meter: UsageMeter): BodyPipe {
  const { request } = context;
  if (status >= 400) return opaquePipe;
  if (request.translation) {
    return events
      ? translatedEventPipe(request.translation, meter, context, request.wantsUsage)
      : translatedJsonPipe(request.translation, meter, context);
  }
  if (events) return eventPipe(request.dialect, meter, request.hidesUsage);
  return type.includes("json") ? jsonPipe(meter) : opaquePipe;
}

function isShort(headers: IncomingHttpHeaders): boolean {
  const length = headers["content-length"];
  return length !== undefined && headers["content-encoding"] === undefined && Number(length) <= WHOLE_MAX_BYTES;
}

/** A failure in the middle of a stream, in the caller's dialect. */
export const streamFailure = (error: GatewayError): StreamFailure => ({
  code: error.code,
  message: error.message,
  status: error.status,
});

export function writeJson(res: ServerResponse, status: number, value: unknown, headers: HeaderBag = {}): void {
  const body = Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
  res.writeHead(status, { ...headers, "content-type": "application/json", "content-length": String(body.length) });
  res.end(body);
}

/** The gateway's own refusal. A caller who already has part of an answer only sees the connection close. */
export function writeError(
  res: ServerResponse,
  error: unknown,
  { nowMs, docsBase, labels }: { nowMs: number; docsBase: string; labels: HeaderBag },
): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  const told = asGatewayError(error);
  // What is left of an oversized body is not waited for. HTTP/2 has no such header, and needs none.
  const unread = told.code === "REQUEST_ENTITY_TOO_LARGE" && res.req.httpVersionMajor === 1;
  const close: HeaderBag = unread ? { connection: "close" } : {};
  writeJson(res, told.status, told.toWire(nowMs, docsBase), { ...labels, ...told.headers, ...close });
}
