/**
 * What happens to the bytes of an answer on their way to the caller. A pipe is fed chunks and gives back what to
 * send; it never waits, so it behaves the same for every chunking.
 */
import { formatSseEvent, parseSseEvent, SseSplitter } from "../lib/network/sse.ts";
import { at, isRecord } from "../lib/untrusted-json.ts";
import {
  type AnswerContext,
  type ChatError,
  type ChatTranslation,
  ProviderStreamError,
  UntranslatableAnswer,
} from "./providers/chat-translation.ts";
import type { Dialect, StreamFailure } from "./providers/dialect.ts";
import { type ChatChunk, usageChunk } from "./providers/openai/chat-answer.ts";
import { openaiChat } from "./providers/openai/dialects.ts";
import type { UsageMeter } from "./usage-meter.ts";

export interface BodyPipe {
  /** Returns the bytes to send now; null for nothing yet. */
  chunk(data: Buffer): Buffer | string | null;
  /** Returns the bytes to send at the end. Throws UntranslatableAnswer when a translated answer cannot be read. */
  end(): Buffer | string | null;
  /** True once a caller may take what it has for the whole answer, although the provider has not closed it yet. */
  readonly done?: boolean;
  /** True when the provider itself reported a failure in the middle of its answer. */
  readonly broke: boolean;
  /** How the caller is told that the answer breaks off here; null when only closing the connection tells it. */
  fail(failure: StreamFailure): Buffer | string | null;
}

/** Bytes whose meaning is nobody's concern: audio, images, files, errors of a provider of the same tongue. */
export const opaquePipe: BodyPipe = { chunk: (data) => data, end: () => null, broke: false, fail: () => null };

/** Up to here an answer is kept to be read; the counts of a longer one are looked for in its last bytes. */
const ANSWER_KEPT_MAX_BYTES = 1024 * 1024;
const ANSWER_TAIL_BYTES = 16 * 1024;

/** A JSON answer, passed on as it comes and read for its counts when complete. */
export function jsonPipe(meter: UsageMeter): BodyPipe {
  let kept: Buffer[] = [];
  let bytes = 0;
  return {
    chunk(data) {
      bytes += data.length;
      kept.push(data);
      if (bytes > ANSWER_KEPT_MAX_BYTES) kept = [Buffer.concat(kept).subarray(-ANSWER_TAIL_BYTES)];
      return data;
    },
    end() {
      const body = kept.length === 1 && kept[0] ? kept[0] : Buffer.concat(kept);
      if (bytes > ANSWER_KEPT_MAX_BYTES) meter.tail(body, bytes);
      else meter.answer(body);
      return null;
    },
    broke: false,
    fail: () => null,
  };
}

/** A chat answer is far shorter; without a limit a provider could fill the memory. */
const TRANSLATED_MAX_BYTES = 16 * 1024 * 1024;

export function translatedJsonPipe(translation: ChatTranslation, meter: UsageMeter, context: AnswerContext): BodyPipe {
  const kept: Buffer[] = [];
  let bytes = 0;
  return {
    chunk(data) {
      bytes += data.length;
      if (bytes <= TRANSLATED_MAX_BYTES) kept.push(data);
      return null;
    },
    end() {
      if (bytes > TRANSLATED_MAX_BYTES) throw new UntranslatableAnswer("longer than can be translated");
      const body = Buffer.concat(kept);
      meter.answer(body);
      return JSON.stringify(translation.fromProvider(parseJson(body.toString("utf8")), context));
    },
    broke: false,
    fail: () => null,
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UntranslatableAnswer("not JSON");
  }
}

/** An event larger than this is passed on in pieces, and read only at its end. */
const EVENT_HELD_MAX_BYTES = 1024 * 1024;

/**
 * A stream of the caller's own dialect: whole events, byte for byte. An unfinished event is held until it is complete
 * so that a failure can be told between two events. What metering asked for is left out again.
 */
export function eventPipe(dialect: Dialect, meter: UsageMeter, hidesUsage: boolean): BodyPipe {
  const splitter = new SseSplitter();
  let done = false;
  /** The last bytes of an event of which a part has gone out already. */
  let torn: Buffer | null = null;
  let broke = false;

  /** The part of an event that is sent to the caller; null for none. */
  function passed(block: Buffer): Buffer | null {
    if (torn) {
      meter.eventEnd(Buffer.concat([torn, block]).subarray(-ANSWER_TAIL_BYTES));
      torn = null;
      return block;
    }
    const event = parseSseEvent(block);
    if (!event) return block;
    if (event.data === "[DONE]") {
      done = true;
      return block;
    }
    const json = tryParse(event.data);
    meter.event(json);
    if (dialect.isEnd(json)) done = true;
    if (isRecord(at(json, "error")) || at(json, "type") === "error") broke = true;
    if (!hidesUsage) return block;
    return isUsageChunk(json) ? null : at(json, "usage") === null ? withoutNoUsage(block) : block;
  }

  return {
    chunk(data) {
      let same = splitter.pendingBytes === 0;
      const kept: Buffer[] = [];
      for (const block of splitter.push(data)) {
        const out = passed(block);
        if (out !== block) same = false;
        if (out) kept.push(out);
      }
      if (splitter.pendingBytes > EVENT_HELD_MAX_BYTES) {
        const part = splitter.drain();
        torn = part.subarray(-ANSWER_TAIL_BYTES);
        return Buffer.concat([...kept, part]);
      }
      if (kept.length === 0) return null;
      // The common case: the chunk is made of whole events, and goes out as it came in.
      if (same && splitter.pendingBytes === 0) return data;
      return kept.length === 1 ? (kept[0] ?? null) : Buffer.concat(kept);
    },
    end() {
      const rest = splitter.drain();
      return rest.length === 0 ? null : passed(rest);
    },
    get done() {
      return done;
    },
    get broke() {
      return broke;
    },
    fail(failure) {
      if (done || broke) return "";
      const { event, data } = dialect.failure(failure);
      return (torn ? "\n\n" : "") + formatSseEvent(JSON.stringify(data), event);
    },
  };
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Passed on as it is: the caller's own client will say what it thinks of it.
    return null;
  }
}

/** Only a chunk that carries nothing else is one that was added for the count. */
const isUsageChunk = (event: unknown): boolean => {
  const choices = at(event, "choices");
  return Array.isArray(choices) && choices.length === 0 && isRecord(at(event, "usage"));
};

const NO_USAGE_YET = Buffer.from(',"usage":null');

/** Chunks before it say that there is none yet, for those who asked only. In a string the quotes would be escaped. */
function withoutNoUsage(block: Buffer): Buffer {
  const from = block.lastIndexOf(NO_USAGE_YET);
  return from < 0 ? block : Buffer.concat([block.subarray(0, from), block.subarray(from + NO_USAGE_YET.length)]);
}

/** A stream of another dialect: each event is turned into the caller's chunks as it comes. */
export function translatedEventPipe(
  translation: ChatTranslation,
  meter: UsageMeter,
  context: AnswerContext,
  wantsUsage: boolean,
): BodyPipe {
  const splitter = new SseSplitter();
  const stream = translation.stream(context);
  let last: ChatChunk | null = null;
  let failed = false;

  function translate(block: Buffer): string {
    const event = parseSseEvent(block);
    if (!event || failed) return "";
    try {
      const json = parseJson(event.data);
      meter.event(json);
      const chunks = stream.push(json);
      last = chunks.at(-1) ?? last;
      return chunks.map((chunk) => formatSseEvent(JSON.stringify(chunk))).join("");
    } catch (error) {
      return breakOff(errorOf(error));
    }
  }

  function breakOff(error: ChatError): string {
    failed = true;
    return formatSseEvent(JSON.stringify({ error: { ...error, param: null } }));
  }

  return {
    chunk(data) {
      const text = splitter.push(data).map(translate).join("");
      if (splitter.pendingBytes > EVENT_HELD_MAX_BYTES) {
        splitter.drain();
        return text + (failed ? "" : breakOff(errorOf(new UntranslatableAnswer("an event that is too long"))));
      }
      return text === "" ? null : text;
    },
    end() {
      const rest = splitter.drain();
      const text = rest.length > 0 ? translate(rest) : "";
      if (failed) return text;
      if (!stream.finished) return text + breakOff(errorOf(new UntranslatableAnswer("a stream that ends early")));
      const usage = wantsUsage && last ? formatSseEvent(JSON.stringify(usageChunk(last, meter.reported))) : "";
      return `${text}${usage}${formatSseEvent("[DONE]")}`;
    },
    get broke() {
      return failed;
    },
    fail(failure) {
      if (failed || stream.finished) return "";
      return formatSseEvent(JSON.stringify(openaiChat.failure(failure).data));
    },
  };
}

function errorOf(error: unknown): ChatError {
  if (error instanceof ProviderStreamError) return error.error;
  if (error instanceof UntranslatableAnswer)
    return { message: error.message, type: "platform_error", code: "PROVIDER_BAD_RESPONSE" };
  throw error;
}
