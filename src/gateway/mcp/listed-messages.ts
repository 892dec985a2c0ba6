/**
 * Finds the tool lists among the messages of an MCP server and passes them through a gate: in an answer of JSON, and in
 * a stream of events. A list is known by its shape, so it does not matter on which stream or for which request it comes.
 */

import { parseSseEvent, SseSplitter } from "../../lib/network/sse.ts";
import { isRecord } from "../../lib/untrusted-json.ts";
import { hasOtherSpelling, hasRepeatedMember } from "./repeated-members.ts";
import { MESSAGE_BYTES_MAX } from "./rpc-body.ts";
import type { ToolGate } from "./tool-gate.ts";

/** The server's answer cannot be checked, so no client gets it. */
export class UncheckedAnswer extends Error {}

/**
 * The text of an answer with the lists that the caller may see; the same text when it has none. Null for what is no
 * JSON: some clients read more than JSON allows.
 */
export function gatedText(gate: ToolGate, text: string): string | null {
  const parsed = parsedOf(text);
  if (parsed === undefined) return null;
  const told: unknown[] = Array.isArray(parsed) ? parsed : [parsed];
  try {
    const messages = told.map((message) => (isRecord(message) ? gate.signed(message) : message));
    if (!messages.some(isList) && messages.every((message, index) => message === told[index])) {
      if (messages.some(hasTwoReadings)) throw new UncheckedAnswer("A member is spelled in another way.");
      return hasRepeatedMember(text) ? JSON.stringify(parsed) : text;
    }
    const gated = messages.map((message: unknown) =>
      isList(message)
        ? { ...message, result: { ...message.result, tools: gate.visible(message.result.tools) } }
        : message,
    );
    if (gated.some(hasTwoReadings)) throw new UncheckedAnswer("A member is spelled in another way.");
    return JSON.stringify(Array.isArray(parsed) ? gated : gated[0]);
  } catch (error) {
    if (error instanceof RangeError) throw new UncheckedAnswer("The answer is nested too deeply.");
    throw error;
  }
}

function parsedOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

interface ListMessage {
  result: { tools: unknown[] };
}

const isList = (message: unknown): message is ListMessage =>
  isRecord(message) && isRecord(message.result) && Array.isArray(message.result.tools);

const hasTwoReadings = (message: unknown): boolean =>
  isRecord(message) &&
  (hasOtherSpelling(message, ["result"]) || (isRecord(message.result) && hasOtherSpelling(message.result, ["tools"])));

/** A carriage return alone ends a line for clients, and clients skip a byte order mark: both can only hide an event. */
const HIDING = /\r(?!\n)|^\uFEFF/m;

export class GatedEvents {
  readonly #gate: ToolGate;
  readonly #splitter = new SseSplitter();

  constructor(gate: ToolGate) {
    this.#gate = gate;
  }

  push(chunk: Buffer): Buffer {
    const blocks = this.#splitter.push(chunk);
    if (this.#splitter.pendingBytes > MESSAGE_BYTES_MAX) throw new UncheckedAnswer("An event is too large.");
    return Buffer.concat(blocks.map((block) => this.#gated(block)));
  }

  /** Clients ignore an event that is not complete, so the rest is dropped. */
  #gated(block: Buffer): Buffer {
    const text = block.toString("utf8");
    if (HIDING.test(text)) throw new UncheckedAnswer("An event has characters that hide it.");
    const event = parseSseEvent(block);
    // Servers begin a stream with an event that has an id only.
    if (event === null || event.data === "") return block;
    const data = gatedText(this.#gate, event.data);
    if (data === null) return Buffer.alloc(0);
    if (data === event.data) return block;
    const others = text.split(/\r?\n/).filter((line) => line !== "" && !/^data(:|$)/.test(line));
    return Buffer.from([...others, `data: ${data}`, "", ""].join("\n"));
  }
}
