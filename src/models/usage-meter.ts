/** Usage of one request: as the provider reports it, otherwise estimated and marked as such. */

import { lastValueNamed, valueOfMember } from "./json-members.ts";
import type { Dialect, StreamReading } from "./providers/dialect.ts";
import { NO_USAGE, type TokenUsage } from "./providers/token-usage.ts";

/** Typical of prose in European languages; only ever used for what nobody reported. */
const ESTIMATED_BYTES_PER_TOKEN = 4;

export interface MeteredUsage {
  usage: TokenUsage;
  estimated: boolean;
}

export class UsageMeter {
  readonly #dialect: Dialect;
  readonly #reading: StreamReading = { usage: null, covers: false, outputBytes: 0 };
  /** Text was generated before the caller's eyes, whatever its endpoint is called. */
  #streamed = false;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  /** Reads one parsed event of a stream. */
  event(event: unknown): void {
    this.#dialect.observe(event, this.#reading);
    if (this.#reading.outputBytes > 0) this.#streamed = true;
  }

  /** The last bytes of an event that was too long to keep: an image, or a whole answer told once more. */
  eventEnd(end: Buffer): void {
    const usage = this.#dialect.readUsage(lastValueNamed(end, this.#dialect.usageMember));
    if (!usage) return;
    this.#reading.usage = usage;
    this.#reading.covers = true;
  }

  /** A whole JSON answer. Only the member with the counts is parsed. */
  answer(body: Buffer): void {
    const member = valueOfMember(body, this.#dialect.usageMember);
    if (member) {
      this.#reading.usage = this.#dialect.readUsage(member.value);
      this.#reading.covers = this.#reading.usage !== null;
    } else {
      this.#list(body);
    }
    if (!this.#reading.usage) this.#reading.outputBytes = body.length;
  }

  /** The last bytes of a JSON answer that was too long to keep, or of one in lines. */
  tail(end: Buffer, answerBytes: number): void {
    this.#reading.usage = this.#dialect.readUsage(lastValueNamed(end, this.#dialect.usageMember));
    this.#reading.covers = this.#reading.usage !== null;
    if (!this.#reading.usage) this.#reading.outputBytes = answerBytes;
  }

  /** The counts for a usage chunk in the caller's dialect. */
  get reported(): TokenUsage {
    return this.#reading.usage ?? NO_USAGE;
  }

  /** `estimateInput` gives tokens of the request; it is only asked when the provider said nothing. */
  result(estimateInput: (bytesPerToken: number) => number): MeteredUsage {
    const { usage, covers, outputBytes } = this.#reading;
    if (usage && covers) return { usage, estimated: false };
    const outputTokens = Math.ceil(outputBytes / ESTIMATED_BYTES_PER_TOKEN);
    if (usage)
      return { usage: { ...usage, outputTokens: Math.max(usage.outputTokens, outputTokens) }, estimated: true };
    const writes = this.#dialect.generates || this.#streamed;
    // Uploads, listings and the like use no tokens and report none.
    if (!writes && this.#dialect.model === "body-if-present") return { usage: NO_USAGE, estimated: false };
    const inputTokens = estimateInput(ESTIMATED_BYTES_PER_TOKEN);
    return { usage: { ...NO_USAGE, inputTokens, outputTokens: writes ? outputTokens : 0 }, estimated: true };
  }

  /** Gemini streams a JSON list when events were not requested. */
  #list(body: Buffer): void {
    try {
      const list: unknown = JSON.parse(body.toString("utf8"));
      if (Array.isArray(list)) for (const item of list) this.event(item);
    } catch {
      // Lines of JSON, of which the last one counts, or no JSON at all.
      this.tail(body, body.length);
    }
  }
}
