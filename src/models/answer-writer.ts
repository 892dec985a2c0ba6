/** Writes a provider's answer to the caller's connection. */

import type { GatewayError } from "../contract/gateway-errors.ts";
import type { Downstream } from "../http/downstream.ts";
import { fieldOf } from "../http/fields.ts";
import { STATUS_CODES } from "../lib/network/node-http.ts";
import { isLegible } from "./answer-encoding.ts";
import { batchPipe } from "./batches/batch-usage.ts";
import {
  type BodyPipe,
  eventPipe,
  jsonPipe,
  opaquePipe,
  translatedEventPipe,
  translatedJsonPipe,
} from "./body-pipes.ts";
import type { OpenedBody } from "./exchange.ts";
import { frontEventPipe, frontJsonPipe } from "./front-pipes.ts";
import { redactedEventPipe, redactedJsonPipe, refusedPipe } from "./guardrails/answer-pipes.ts";
import type { AnswerGuard } from "./guardrails/guard.ts";
import type { AnswerContext } from "./providers/chat-translation.ts";
import type { StreamFailure } from "./providers/dialect.ts";
import { passedFields } from "./upstream-headers.ts";
import type { UpstreamRequest } from "./upstream-request.ts";
import type { UsageMeter } from "./usage-meter.ts";

/** Short answers go out in one write with their head; longer ones are not held back. */
const WHOLE_MAX_BYTES = 256 * 1024;
const EVENT_STREAM = "text/event-stream; charset=utf-8";

export interface OpenContext extends AnswerContext {
  request: UpstreamRequest;
  meter: UsageMeter;
  down: Downstream;
  /** Header fields of the platform's own. */
  labels: string[];
  /** Null when no guardrail is about answers. */
  guard: AnswerGuard | null;
  /** Gets the whole answer that may show batches; null for answers that show none. */
  batches: ((body: Buffer) => void) | null;
}

export function openAnswer(status: number, headers: string[], context: OpenContext): OpenedBody {
  const { request, meter, down, labels } = context;
  const type = fieldOf(headers, "content-type") ?? "";
  const events = type.startsWith("text/event-stream");
  const translated = request.translation !== null || request.front !== null;
  const bodiless = request.method === "HEAD" || status === 204 || status === 304;
  const length = fieldOf(headers, "content-encoding") === undefined ? fieldOf(headers, "content-length") : undefined;
  const isShort = length !== undefined && Number(length) <= WHOLE_MAX_BYTES;
  const guard = status >= 400 || bodiless ? null : context.guard;
  const plain = pipeFor(status, type, events, context, meter);
  const pipe = context.batches && status < 300 && !events ? batchPipe(plain, context.batches) : plain;
  const inspect = guard?.inspect ?? null;
  return {
    pipe: guard ? (isLegible(headers) ? guardedPipe(pipe, guard, type, events) : refusedPipe) : pipe,
    inspect: inspect && ((whole) => inspect(whole, events)),
    sent: inspect ? "whole" : events ? "events" : translated || guard || isShort ? "whole" : "chunks",
    writeHead(bytes) {
      const fields = passedFields(headers, translated ? TRANSLATED_DROP : NOTHING_DROP, labels);
      if (translated) fields.push("Content-Type", events ? EVENT_STREAM : "application/json");
      // A body that is streamed unchanged keeps the provider's Content-Length.
      const told = bytes === null ? (events || translated ? undefined : length) : String(bytes);
      if (told !== undefined && !bodiless) fields.push("Content-Length", told);
      down.head(status, STATUS_CODES[status] ?? "", fields);
    },
  };
}

const NOTHING_DROP: ReadonlySet<string> = new Set();
const TRANSLATED_DROP: ReadonlySet<string> = new Set(["content-type"]);

function guardedPipe(pipe: BodyPipe, { patterns }: AnswerGuard, type: string, events: boolean): BodyPipe {
  if (!events && !type.includes("json")) return refusedPipe;
  if (patterns.length === 0) return pipe;
  return events ? redactedEventPipe(pipe, patterns) : redactedJsonPipe(pipe, patterns);
}

function pipeFor(status: number, type: string, events: boolean, context: OpenContext, meter: UsageMeter): BodyPipe {
  const { request, model, nowMs } = context;
  if (status >= 400) return opaquePipe;
  if (request.front) {
    const { front, request: asked } = request.front;
    const inner = chatPipeFor(type, events, context, meter);
    return (events ? frontEventPipe : frontJsonPipe)(inner, front, { request: asked, model, nowMs });
  }
  return chatPipeFor(type, events, context, meter);
}

function chatPipeFor(type: string, events: boolean, context: OpenContext, meter: UsageMeter): BodyPipe {
  const { request } = context;
  if (request.translation) {
    return events
      ? translatedEventPipe(request.translation, meter, context, request.wantsUsage)
      : translatedJsonPipe(request.translation, meter, context);
  }
  if (events) return eventPipe(request.dialect, meter, request.hidesUsage);
  return type.includes("json") ? jsonPipe(meter) : opaquePipe;
}

/** A failure in the middle of a stream, in the caller's dialect. */
export const streamFailure = (error: GatewayError): StreamFailure => ({
  code: error.code,
  message: error.message,
  status: error.status,
});

export function writeJson(down: Downstream, status: number, value: unknown, fields: readonly string[]): void {
  writeWhole(down, status, Buffer.from(JSON.stringify(value)), [...fields, "Content-Type", "application/json"]);
}

export function writeWhole(down: Downstream, status: number, body: Buffer, fields: readonly string[]): void {
  down.head(status, STATUS_CODES[status] ?? "", [...fields, "Content-Length", String(body.length)]);
  if (body.length > 0) down.write(body);
  down.end([]);
}
