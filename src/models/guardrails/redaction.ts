/**
 * Replaces what a model's guardrails name in the strings of a JSON text: of a request before the provider, the cache or
 * a fallback sees the request, of an answer before the caller sees the answer. All else of the body stays byte for byte. A body that cannot be read as JSON is refused: redaction
 * that silently does not happen is worse than none.
 */
import { GatewayError } from "../../contract/gateway-errors.ts";
import type { GuardrailRules } from "../../contract/model-guardrails.ts";
import { type ClientCall, withBody } from "../client-call.ts";
import { eachString } from "../json-members.ts";
import { PATTERNS, type Pattern, type Replaced, replacing } from "./patterns.ts";
import { guardrailRefusal } from "./refusal.ts";

/** Text that is searched. The search holds up all other requests: 2 MB take 0.03 s, or 0.4 s when made to be slow. */
const SEARCHED_MAX_BYTES = 2 * 1024 * 1024;
/** Shorter strings are searched whatever they look like. */
const BLOB_MIN_BYTES = 1024;
const BLOB_LOOK_BYTES = 1024;
const BACKSLASH = 0x5c;

export interface Redacted {
  call: ClientCall;
  /** Replaced parts. */
  count: number;
}

/** The rules of all models that a request passes. */
export function redact(call: ClientCall, all: readonly GuardrailRules[]): Redacted {
  const patterns = patternsOf(all);
  if (patterns.length === 0 || call.body.length === 0) return { call, count: 0 };
  if (!call.members) throw refused("only JSON bodies can be redacted; forms and files cannot");
  const { body, count } = redactJson(call.body, patterns);
  return { call: count === 0 ? call : withBody(call, body), count };
}

/** Every byte outside of the replaced strings stays as it is. */
export function redactJson(body: Buffer, patterns: readonly Pattern[]): { body: Buffer; count: number } {
  const parts: Buffer[] = [];
  let kept = 0;
  let count = 0;
  let searched = 0;
  eachString(body, (start, end) => {
    if (isBlob(body, start, end)) return;
    searched += end - start;
    if (searched > SEARCHED_MAX_BYTES)
      throw refused(`more than ${SEARCHED_MAX_BYTES} bytes of text cannot be redacted`);
    const found = redactText(textOf(body, start, end), patterns);
    if (found.count === 0) return;
    count += found.count;
    parts.push(body.subarray(kept, start), Buffer.from(JSON.stringify(found.text).slice(1, -1)));
    kept = end;
  });
  return { body: count === 0 ? body : Buffer.concat([...parts, body.subarray(kept)]), count };
}

const refused = (why: string): GatewayError => guardrailRefusal(`spec.guardrails of the model refuses this: ${why}.`);

function textOf(body: Buffer, start: number, end: number): string {
  const raw = body.toString("utf8", start, end);
  if (!body.subarray(start, end).includes(BACKSLASH)) return raw;
  try {
    return String(JSON.parse(`"${raw}"`));
  } catch (cause) {
    throw new GatewayError("BAD_REQUEST", "The body is not valid JSON.", { cause });
  }
}

/** An image or a file: base64 throughout, or a data URL with it. Text has other characters before long. */
function isBlob(body: Buffer, start: number, end: number): boolean {
  return (
    end - start >= BLOB_MIN_BYTES && isBlobText(body.toString("latin1", start, Math.min(end, start + BLOB_LOOK_BYTES)))
  );
}

export function isBlobText(text: string): boolean {
  if (text.length < BLOB_MIN_BYTES) return false;
  const look = text.slice(0, BLOB_LOOK_BYTES);
  return /^(?:data:[\w.+/-]{1,100};base64,)?[A-Za-z0-9+/=_-]+$/.test(look) && !/^\d+$/.test(look);
}

export function redactText(text: string, patterns: readonly Pattern[]): Replaced {
  let count = 0;
  let left = text;
  for (const pattern of patterns) {
    const replaced = pattern.apply(left);
    count += replaced.count;
    left = replaced.text;
  }
  return { text: left, count };
}

/** Rules are read once and used many times. */
const wordPatterns = new WeakMap<GuardrailRules, Pattern | null>();

/** What is looked for in answers: only the rules that say so. */
export const answerPatternsOf = (all: readonly GuardrailRules[]): Pattern[] =>
  patternsOf(all.filter(({ redact: rules }) => rules?.answers));

function patternsOf(all: readonly GuardrailRules[]): Pattern[] {
  const found = new Set<Pattern>();
  for (const rules of all) {
    for (const name of rules.redact?.patterns ?? []) found.add(PATTERNS[name]);
    const words = wordPattern(rules);
    if (words) found.add(words);
  }
  return [...found];
}

function wordPattern(rules: GuardrailRules): Pattern | null {
  const known = wordPatterns.get(rules);
  if (known !== undefined) return known;
  const words = [...(rules.redact?.words ?? [])].sort((a, b) => b.length - a.length);
  const escaped = words.map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  const made = words.length === 0 ? null : replacing(new RegExp(escaped.join("|"), "giu"), () => "[REDACTED]");
  wordPatterns.set(rules, made);
  return made;
}
