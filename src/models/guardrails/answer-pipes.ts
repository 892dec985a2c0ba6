/** What happens to an answer that is redacted, behind the pipe that writes it in the caller's API. */
import type { GatewayError } from "../../contract/gateway-errors.ts";
import { formatSseEvent, parseSseEvent, SseSplitter } from "../../lib/network/sse.ts";
import type { BodyPipe } from "../body-pipes.ts";
import { deltasOf, endsTexts } from "./delta-text.ts";
import { HeldText } from "./held-text.ts";
import type { Pattern } from "./patterns.ts";
import { isBlobText, redactJson, redactText } from "./redaction.ts";
import { guardrailRefusal } from "./refusal.ts";
import { dropSpelledTokens, eachBranch, isBranch } from "./spelled-tokens.ts";

/** Answers that guardrails look at are held in memory; a longer one is refused. */
export const HELD_ANSWER_MAX_BYTES = 16 * 1024 * 1024;

/** Events and texts that wait at one time: far more than a stream needs, and a bound for a hostile one. */
const EVENTS_MAX = 10_000;
const TEXTS_MAX = 256;

/** An event that is longer cannot be redacted, and ends the stream. */
const EVENT_MAX_BYTES = 1024 * 1024;

export const tooLong = (): GatewayError =>
  guardrailRefusal(
    `spec.guardrails of the model refuses the answer: it is longer than ${HELD_ANSWER_MAX_BYTES} bytes.`,
  );

const notJson = (): GatewayError =>
  guardrailRefusal("spec.guardrails of the model refuses the answer: only JSON and streams of it can be looked at.");

/** An answer that guardrails cannot look at. */
export const refusedPipe: BodyPipe = {
  chunk: () => null,
  end() {
    throw notJson();
  },
  broke: false,
  fail: () => null,
};

/** A JSON answer, redacted when it is complete. */
export function redactedJsonPipe(inner: BodyPipe, patterns: readonly Pattern[]): BodyPipe {
  const kept: Buffer[] = [];
  let bytes = 0;
  const keep = (out: Buffer | string | null): void => {
    if (out === null) return;
    const part = bytesOf(out);
    bytes += part.length;
    if (bytes <= HELD_ANSWER_MAX_BYTES) kept.push(part);
  };
  return {
    chunk(data) {
      keep(inner.chunk(data));
      return null;
    },
    end() {
      keep(inner.end());
      if (bytes > HELD_ANSWER_MAX_BYTES) throw tooLong();
      const whole = Buffer.concat(kept);
      const json = tryParse(whole.toString("utf8"));
      // Lines of JSON under the name of JSON may be a stream, whose texts go over their borders.
      if (json === undefined) throw notJson();
      return redactJson(dropSpelledTokens(json) ? Buffer.from(JSON.stringify(json)) : whole, patterns).body;
    },
    get broke() {
      return inner.broke;
    },
    fail: (failure) => inner.fail(failure),
  };
}

interface QueuedEvent {
  /** The bytes in which the event came. */
  block: Buffer;
  name: string;
  json: unknown;
  changed: boolean;
  /** Pieces of text whose redacted form is not known yet. */
  open: number;
}

/** A stream, redacted over the borders of its events; an event waits until the text that it carries is known. */
export function redactedEventPipe(inner: BodyPipe, patterns: readonly Pattern[]): BodyPipe {
  const splitter = new SseSplitter();
  const texts = new Map<string, HeldText>();
  const queue: QueuedEvent[] = [];
  let cut = false;

  function enqueue(block: Buffer): void {
    const event = parseSseEvent(block);
    const json = event ? tryParse(event.data) : undefined;
    const queued: QueuedEvent = { block, name: event?.event ?? "", json, changed: false, open: 0 };
    queue.push(queued);
    if (event?.data === "[DONE]" || endsTexts(json) || queue.length > EVENTS_MAX || texts.size > TEXTS_MAX) endTexts();
    if (event && !isBranch(json)) {
      queued.block = Buffer.from(formatSseEvent(redactText(event.data, patterns).text, event.event || undefined));
      return;
    }
    if (!isBranch(json)) return;
    if (dropSpelledTokens(json)) queued.changed = true;
    const deltas = deltasOf(json);
    const pieces = new Map(deltas.map((delta) => [delta.holder, new Set<string>()]));
    for (const { holder, member } of deltas) pieces.get(holder)?.add(member);
    if (redactOthers(json, patterns, pieces)) queued.changed = true;
    for (const { key, holder, member, text } of deltas) {
      queued.open += 1;
      textOf(key).push(text, (instead) => {
        queued.open -= 1;
        if (instead === text) return;
        holder[member] = instead;
        queued.changed = true;
      });
    }
  }

  function textOf(key: string): HeldText {
    const known = texts.get(key);
    if (known) return known;
    const made = new HeldText(patterns);
    texts.set(key, made);
    return made;
  }

  function endTexts(): void {
    for (const text of texts.values()) text.end();
    texts.clear();
  }

  /** The events whose text is known. */
  function released(): Buffer | null {
    const out: Buffer[] = [];
    while (queue[0]?.open === 0) {
      const { block, name, json, changed } = queue.shift() as QueuedEvent;
      out.push(changed ? Buffer.from(formatSseEvent(JSON.stringify(json), name || undefined)) : block);
    }
    return out.length === 0 ? null : Buffer.concat(out);
  }

  function take(out: Buffer | string | null): void {
    if (out === null || cut) return;
    for (const block of splitter.push(bytesOf(out))) enqueue(block);
    if (splitter.pendingBytes <= EVENT_MAX_BYTES) return;
    cut = true;
    splitter.drain();
    endTexts();
    const { code, message, status } = tooLong();
    queue.push({ ...NO_EVENT, block: bytesOf(inner.fail({ code, message, status }) ?? "") });
  }

  return {
    chunk(data) {
      take(inner.chunk(data));
      return released();
    },
    end() {
      take(inner.end());
      const rest = splitter.drain();
      if (rest.length > 0 && !cut) enqueue(rest);
      endTexts();
      return released();
    },
    get done() {
      return queue.length === 0 && Boolean(inner.done);
    },
    get broke() {
      return cut || inner.broke;
    },
    fail(failure) {
      const told = inner.fail(failure);
      if (told === null) return null;
      endTexts();
      return Buffer.concat([released() ?? EMPTY, bytesOf(told)]);
    },
  };
}

const EMPTY = Buffer.alloc(0);
const NO_EVENT: QueuedEvent = { block: EMPTY, name: "", json: null, changed: false, open: 0 };

const bytesOf = (out: Buffer | string): Buffer => (typeof out === "string" ? Buffer.from(out) : out);

/** Strings that no other event continues, names excluded; true when one was changed. */
function redactOthers(
  json: unknown,
  patterns: readonly Pattern[],
  pieces: ReadonlyMap<object, ReadonlySet<string>>,
): boolean {
  let changed = false;
  eachBranch(json, (branch) => {
    for (const [key, value] of Object.entries(branch)) {
      if (typeof value !== "string" || pieces.get(branch)?.has(key) || isBlobText(value)) continue;
      const { text, count } = redactText(value, patterns);
      if (count === 0) continue;
      (branch as Record<string, unknown>)[key] = text;
      changed = true;
    }
  });
  return changed;
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
