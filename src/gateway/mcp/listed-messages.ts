/**
 * Finds the tool lists among the messages of an MCP server and passes them through a gate: in an answer of JSON, and in
 * a stream of events. A list is known by its shape, so it does not matter on which stream or for which request it comes.
 */

import { parseSseEvent, SseSplitter } from "../../lib/network/sse.ts";
import { isRecord } from "../../lib/untrusted-json.ts";
import { MESSAGE_BYTES_MAX } from "./rpc-body.ts";
import type { ToolGate } from "./tool-gate.ts";

/** The server's answer cannot be checked, so no client gets it. */
export class UncheckedAnswer extends Error {}

/** The text of an answer with the lists that the caller may see; the same text when it has none. */
export function gatedText(gate: ToolGate, text: string): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return text; // no client reads a list from it
  }
  const messages = Array.isArray(parsed) ? parsed : [parsed];
  if (!messages.some(isList)) return text;
  const gated = messages.map((message: unknown) =>
    isList(message)
      ? { ...message, result: { ...message.result, tools: gate.visible(message.result.tools) } }
      : message,
  );
  return JSON.stringify(Array.isArray(parsed) ? gated : gated[0]);
}

interface ListMessage {
  result: { tools: unknown[] };
}

const isList = (message: unknown): message is ListMessage =>
  isRecord(message) && isRecord(message.result) && Array.isArray(message.result.tools);

/** A carriage return alone ends a line for clients, and no server writes one: it can only hide an event. */
const LONE_RETURN = /\r(?!\n)/;

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
    if (LONE_RETURN.test(text)) throw new UncheckedAnswer("An event has a line break that cannot be checked.");
    const event = parseSseEvent(block);
    if (event === null) return block;
    const data = gatedText(this.#gate, event.data);
    if (data === event.data) return block;
    const others = text.split(/\r?\n/).filter((line) => line !== "" && !/^data(:|$)/.test(line));
    return Buffer.from([...others, `data: ${data}`, "", ""].join("\n"));
  }
}
