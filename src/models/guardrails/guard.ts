/** The guardrails of one request: the rules of the asked model, and of the model that serves the request. */
import { GatewayError } from "../../contract/gateway-errors.ts";
import {
  GUARDRAIL_EVENTS,
  type GuardrailEvent,
  type GuardrailRules,
  type GuardrailWebhook,
} from "../../contract/model-guardrails.ts";
import { formatSseEvent, parseSseEvent, type SseEvent, SseSplitter } from "../../lib/network/sse.ts";
import { at, isRecord } from "../../lib/untrusted-json.ts";
import { type ClientCall, withBody } from "../client-call.ts";
import type { Pattern } from "./patterns.ts";
import { answerPatternsOf, redact } from "./redaction.ts";
import { guardrailRefusal } from "./refusal.ts";
import { askWebhook, type WebhookContext, type WebhookDeps } from "./webhook.ts";

export interface GuardedCall {
  call: ClientCall;
  /** Parts of the request that were replaced. */
  redactions: number;
}

/** How an answer is guarded. */
export interface AnswerGuard {
  patterns: readonly Pattern[];
  /** Sees the whole answer before the caller does; null when no webhook asks for answers. */
  inspect: ((whole: Buffer, isStream: boolean) => Promise<Buffer>) | null;
}

export class Guard {
  readonly #deps: WebhookDeps;
  readonly #contextOf: (call: ClientCall) => WebhookContext;
  /** Verdicts on requests: a fallback or a second member of a balance does not ask the same again. */
  readonly #decided: { hook: GuardrailWebhook; body: Buffer; result: Promise<Buffer> }[] = [];

  constructor(deps: WebhookDeps, contextOf: (call: ClientCall) => WebhookContext) {
    this.#deps = deps;
    this.#contextOf = contextOf;
  }

  async request(call: ClientCall, rules: readonly GuardrailRules[]): Promise<GuardedCall> {
    const redacted = redact(call, rules);
    let passed = redacted.call;
    for (const hook of hooksOf(rules, "request")) {
      if (passed.body.length === 0) break;
      if (!passed.members) throw refused("request", "the webhook is shown JSON; forms and files are not JSON");
      const body = await this.#decide(hook, passed);
      if (body !== passed.body) passed = withBody(passed, body);
    }
    return { call: passed, redactions: redacted.count };
  }

  /** Null when no rule is about answers. */
  answer(call: ClientCall, rules: readonly GuardrailRules[]): AnswerGuard | null {
    const patterns = answerPatternsOf(rules);
    const hooks = hooksOf(rules, "response");
    if (patterns.length === 0 && hooks.length === 0) return null;
    const inspect = async (whole: Buffer, isStream: boolean): Promise<Buffer> => {
      let passed = whole;
      for (const hook of hooks) passed = await this.#inspect(hook, call, passed, isStream);
      return passed;
    };
    return { patterns, inspect: hooks.length === 0 ? null : inspect };
  }

  #decide(hook: GuardrailWebhook, call: ClientCall): Promise<Buffer> {
    const known = this.#decided.find((one) => one.hook === hook && one.body.equals(call.body));
    if (known) return known.result;
    const result = this.#askAboutRequest(hook, call);
    this.#decided.push({ hook, body: call.body, result });
    return result;
  }

  async #askAboutRequest(hook: GuardrailWebhook, call: ClientCall): Promise<Buffer> {
    const request = parsed(call.body);
    if (!isRecord(request)) throw new GatewayError("BAD_REQUEST", "The body is not valid JSON.");
    const asked = { event: "request", members: { request }, replaceable: "request" } as const;
    const instead = await askWebhook(hook, { ...asked, context: this.#contextOf(call) }, this.#deps);
    if (instead !== null && !isRecord(instead))
      throw refused("request", "the webhook replaced the request by something that is no JSON object");
    // The provider gets what the webhook saw: of two members with the same name parsers may choose another one.
    return Buffer.from(JSON.stringify(instead ?? request));
  }

  async #inspect(hook: GuardrailWebhook, call: ClientCall, whole: Buffer, isStream: boolean): Promise<Buffer> {
    const request = parsed(call.body) ?? null;
    const events = isStream ? eventsOf(whole) : null;
    const shown = events?.map(shownEvent) ?? parsed(whole);
    if (shown === undefined) throw refused("answer", "it is not JSON, which the webhook is shown");
    const replaceable = isStream ? "events" : "response";
    const members = { request, [replaceable]: shown };
    const context = this.#contextOf(call);
    const instead = await askWebhook(hook, { event: "response", context, members, replaceable }, this.#deps);
    // The caller gets what the webhook saw: comments of a stream and doubled members were not shown.
    if (instead === null && events)
      return Buffer.from(events.map(({ data, event }) => formatted(data, event)).join(""));
    return isStream ? eventBytes(instead) : Buffer.from(JSON.stringify(instead ?? shown));
  }
}

const hooksOf = (rules: readonly GuardrailRules[], event: GuardrailEvent): GuardrailWebhook[] =>
  rules.flatMap(({ webhook }) => (webhook && (webhook.events ?? GUARDRAIL_EVENTS).includes(event) ? [webhook] : []));

const refused = (what: string, why: string): GatewayError =>
  guardrailRefusal(`spec.guardrails of the model refuses the ${what}: ${why}.`);

/** Undefined when the text is not JSON. */
function parsed(text: Buffer | string): unknown {
  try {
    return JSON.parse(typeof text === "string" ? text : text.toString("utf8"));
  } catch {
    return undefined;
  }
}

/** An event as a webhook sees it: JSON where it is JSON, `[DONE]` as text. */
interface ShownEvent {
  event?: string;
  data: unknown;
}

function eventsOf(whole: Buffer): SseEvent[] {
  const splitter = new SseSplitter();
  const blocks = [...splitter.push(whole), splitter.drain()];
  return blocks.flatMap((block) => (block.length > 0 ? (parseSseEvent(block) ?? []) : []));
}

const shownEvent = ({ event, data }: SseEvent): ShownEvent => ({
  ...(event ? { event } : {}),
  data: parsed(data) ?? data,
});

/** An event as it was shown. */
function formatted(data: string, event: string): string {
  const json = parsed(data);
  const text = json === undefined ? data.replaceAll("\n", "\ndata: ") : JSON.stringify(json);
  return formatSseEvent(text, event || undefined);
}

function eventBytes(events: unknown): Buffer {
  if (!Array.isArray(events)) throw refused("answer", "the webhook replaced the events by something that is no list");
  const text = events.map((one) => {
    const [event, data] = [at(one, "event"), at(one, "data")];
    const name = typeof event === "string" && EVENT_NAME.test(event) ? event : undefined;
    return formatSseEvent(data === DONE ? DONE : JSON.stringify(data ?? null), name);
  });
  return Buffer.from(text.join(""));
}

const DONE = "[DONE]";
const EVENT_NAME = /^[\w.-]{1,100}$/;
