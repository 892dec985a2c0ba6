/**
 * Asks the webhook of a model's guardrails about a request or an answer. The POST is signed like every other that the
 * platform sends, and goes only where the platform may connect to for a tenant.
 */
import { z } from "zod";
import { GatewayError } from "../../contract/gateway-errors.ts";
import {
  type GuardrailEvent,
  type GuardrailWebhook,
  WEBHOOK_TIMEOUT_DEFAULT_MS,
} from "../../contract/model-guardrails.ts";
import type { Outbound } from "../../lib/network/outbound-http.ts";
import { signWebhook } from "../../lib/network/webhook-signature.ts";
import { printable } from "../../lib/printable.ts";
import { type Clock, toIso } from "../../lib/time/clock.ts";
import type { Subject } from "../model-records.ts";
import { guardrailRefusal } from "./refusal.ts";

export interface WebhookDeps {
  outbound: Pick<Outbound, "request">;
  clock: Clock;
  /** Words of header names: X-{word}-Signature. */
  brandWords: readonly string[];
  log: { warn(fields: Record<string, unknown>, message: string): void };
}

/** What the webhook is told of a request, whatever it is asked about. */
export interface WebhookContext {
  requestId: string;
  workspace: string;
  model: string;
  /** Path below the model's address. */
  path: string;
  subject: Subject | null;
  session: string | null;
}

export interface WebhookQuestion {
  event: GuardrailEvent;
  context: WebhookContext;
  /** The request, and the answer where the webhook is asked about one. */
  members: Readonly<Record<string, unknown>>;
  /** The member that the webhook may replace. */
  replaceable: string;
}

/** A larger question is refused: the text is in memory several times while it is sent. */
const QUESTION_MAX_BYTES = 8 * 1024 * 1024;
const ANSWER_MAX_BYTES = 8 * 1024 * 1024;
const MESSAGE_MAX_LENGTH = 500;

const verdict = z.object({
  action: z.enum(["allow", "refuse", "replace"]),
  message: z.string().optional(),
});

/** Null: goes on as it is. A value: what the webhook puts in place. Throws when the webhook refuses, or fails. */
export async function askWebhook(hook: GuardrailWebhook, asked: WebhookQuestion, deps: WebhookDeps): Promise<unknown> {
  const what = asked.event === "request" ? "request" : "answer";
  // Whatever `onFailure` says: whoever wrote this text would decide that the webhook is not asked.
  const body = bodyOf(asked, toIso(deps.clock.now()));
  if (body === null)
    throw guardrailRefusal(
      `spec.guardrails of the model refuses the ${what}: with over ${QUESTION_MAX_BYTES} bytes, or nested too deeply, it cannot be shown to the webhook.`,
    );
  let answer: Verdict;
  try {
    answer = await post(hook, body, asked.replaceable, deps);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const { requestId, model, workspace } = asked.context;
    deps.log.warn(
      { requestId, workspace, model, event: asked.event, why },
      "the webhook of a model's guardrails failed",
    );
    if (hook.onFailure === "allow") return null;
    // Of a connection that failed the log says more: the address of the webhook is not for callers of the model.
    const told =
      error instanceof WebhookFault ? error.message : "the webhook did not answer in time, or could not be reached.";
    throw new GatewayError("GUARDRAIL_UNAVAILABLE", `The guardrail of model ${model} could not be asked: ${told}`);
  }
  if (answer.action === "allow") return null;
  if (answer.action === "replace") return answer.value;
  throw guardrailRefusal(`The guardrail of the model refused the ${what}${told(answer.message)}`);
}

/** A webhook that answers with something else than a verdict; the message names no address. */
class WebhookFault extends Error {}

const told = (message: string | undefined): string =>
  message ? `: ${printable(message.slice(0, MESSAGE_MAX_LENGTH))}` : ".";

interface Verdict {
  action: z.infer<typeof verdict>["action"];
  message?: string | undefined;
  value: unknown;
}

async function post(
  { url, secret, timeoutMs = WEBHOOK_TIMEOUT_DEFAULT_MS }: GuardrailWebhook,
  body: string,
  replaceable: string,
  { outbound, clock, brandWords }: WebhookDeps,
): Promise<Verdict> {
  const { signature, timestamp } = signWebhook(secret, body, clock.now());
  const headers: Record<string, string> = { "content-type": "application/json", "user-agent": "berth" };
  for (const word of brandWords) {
    headers[`x-${word}-signature`] = signature;
    headers[`x-${word}-timestamp`] = timestamp;
  }
  const signal = AbortSignal.timeout(timeoutMs);
  const { status, text } = await outbound.request(url, {
    method: "POST",
    headers,
    body,
    signal,
    bytesMax: ANSWER_MAX_BYTES,
  });
  if (status === 204) return { action: "allow", value: null };
  if (status !== 200) throw new WebhookFault(`the webhook answered ${status}.`);
  return verdictOf(text, replaceable);
}

function verdictOf(text: string, replaceable: string): Verdict {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new WebhookFault("the webhook did not answer with JSON.");
  }
  const read = verdict.safeParse(json);
  if (!read.success) throw new WebhookFault("the webhook's answer has no `action`: allow, refuse or replace.");
  const value = (json as Record<string, unknown>)[replaceable];
  if (read.data.action === "replace" && value === undefined)
    throw new WebhookFault(`the webhook replaces, and its answer has no \`${replaceable}\`.`);
  return { ...read.data, value };
}

/** Null for a question that cannot be asked. */
function bodyOf({ event, context, members }: WebhookQuestion, time: string): string | null {
  try {
    const body = JSON.stringify({ event, time, ...context, ...members });
    return Buffer.byteLength(body) > QUESTION_MAX_BYTES ? null : body;
  } catch {
    return null; // nested too deeply to be written
  }
}
