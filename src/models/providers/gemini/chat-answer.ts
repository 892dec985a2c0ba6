import { randomBytes } from "node:crypto";
import { at, isRecord, itemsOf } from "../../../lib/untrusted-json.ts";
import { type AnswerContext, UntranslatableAnswer } from "../chat-translation.ts";
import {
  type AnswerMessage,
  type AnswerToolCall,
  type ChatCompletion,
  chatCompletion,
  type FinishReason,
  seconds,
} from "../openai/chat-answer.ts";
import { NO_USAGE } from "../token-usage.ts";
import { geminiGenerate } from "./dialect.ts";

export function fromGenerated(body: unknown, context: AnswerContext): ChatCompletion {
  if (!isRecord(body)) throw new UntranslatableAnswer("an answer that is not an object");
  const blocked = blockReason(body);
  const candidates = itemsOf(body.candidates);
  if (candidates.length === 0 && !blocked) throw new UntranslatableAnswer("neither candidates nor a block reason");
  const choices = blocked
    ? [{ message: refusal(blocked), finish: "content_filter" as const }]
    : candidates.map((candidate) => choiceOf(candidate));
  const usage = geminiGenerate.readUsage(body.usageMetadata) ?? NO_USAGE;
  return chatCompletion(headOf(body, context), choices, usage);
}

function choiceOf(candidate: unknown): { message: AnswerMessage; finish: FinishReason } {
  const text: string[] = [];
  const thoughts: string[] = [];
  const calls: AnswerToolCall[] = [];
  for (const part of itemsOf(at(at(candidate, "content"), "parts"))) {
    const call = callOf(part);
    if (call) calls.push(call);
    else (at(part, "thought") === true ? thoughts : text).push(String(at(part, "text") ?? ""));
  }
  const message: AnswerMessage = { role: "assistant", content: text.join("") || null, refusal: null };
  if (calls.length > 0) message.tool_calls = calls;
  else message.content ??= "";
  if (thoughts.length > 0) message.reasoning_content = thoughts.join("");
  return { message, finish: finishReason(at(candidate, "finishReason"), calls.length > 0) };
}

/** A function call in a part; null when the part is something else. Ids are made up where the model gave none. */
export function callOf(part: unknown): AnswerToolCall | null {
  const call = at(part, "functionCall");
  if (!isRecord(call)) return null;
  const id = typeof call.id === "string" && call.id !== "" ? call.id : `call_${randomBytes(12).toString("hex")}`;
  const out: AnswerToolCall = {
    id,
    type: "function",
    function: { name: String(call.name), arguments: JSON.stringify(call.args ?? {}) },
  };
  const signature = at(part, "thoughtSignature");
  if (typeof signature === "string") out.extra_content = { google: { thought_signature: signature } };
  return out;
}

export function headOf(body: Record<string, unknown>, context: AnswerContext) {
  return {
    id: typeof body.responseId === "string" ? body.responseId : `chatcmpl-${randomBytes(12).toString("hex")}`,
    created: seconds(context.nowMs),
    model: typeof body.modelVersion === "string" ? body.modelVersion : context.model,
  };
}

/** A refused prompt has no candidates, only the reason. */
export function blockReason(body: Record<string, unknown>): string | null {
  const reason = at(body.promptFeedback, "blockReason");
  return typeof reason === "string" && itemsOf(body.candidates).length === 0 ? reason : null;
}

export const refusalText = (reason: string): string => `The provider refused the prompt (${reason}).`;

const refusal = (reason: string): AnswerMessage => ({ role: "assistant", content: null, refusal: refusalText(reason) });

const FINISH: Record<string, FinishReason> = {
  STOP: "stop",
  MAX_TOKENS: "length",
  SAFETY: "content_filter",
  RECITATION: "content_filter",
  BLOCKLIST: "content_filter",
  PROHIBITED_CONTENT: "content_filter",
  SPII: "content_filter",
  IMAGE_SAFETY: "content_filter",
};

/** Gemini says STOP after function calls too; callers expect `tool_calls`. */
export function finishReason(reason: unknown, hasCalls: boolean): FinishReason {
  const finish = FINISH[String(reason)] ?? "stop";
  return hasCalls && finish === "stop" ? "tool_calls" : finish;
}
