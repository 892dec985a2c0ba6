/** A chat stream as the events of the Messages API: blocks that follow one another, each with a begin and an end. */
import { anthropicMessages } from "../../anthropic/dialect.ts";
import { UntranslatableAnswer } from "../../chat-translation.ts";
import type { StreamFailure } from "../../dialect.ts";
import { NO_USAGE } from "../../token-usage.ts";
import { ChatReading, type ReadCall } from "../chat-reading.ts";
import type { FrontContext, FrontEvent, FrontStream, Json } from "../front.ts";
import { isEmpty, mergeStates, type ProviderState, sealState } from "../provider-state.ts";
import { messageOf, stopOf, thinkingBlock, usageOf } from "./answer.ts";

export class MessageEvents implements FrontStream {
  readonly #reading: ChatReading;
  /** "thinking", "text", or the number of a call; null before the first block and between two. */
  #current: "thinking" | "text" | number | null = null;
  readonly #closedCalls = new Set<number>();
  #index = -1;
  #state: ProviderState = {};
  #begun = false;
  #refused = false;
  #events: FrontEvent[] = [];

  constructor({ model }: FrontContext) {
    this.#reading = new ChatReading(model);
  }

  push(chunk: unknown): FrontEvent[] {
    const { reasoning, text, refusal, calls, state } = this.#reading.take(chunk);
    this.#begin();
    this.#state = mergeStates(this.#state, state);
    if (reasoning !== "") {
      this.#enter("thinking", () => thinkingBlock("", {}));
      this.#delta({ type: "thinking_delta", thinking: reasoning });
    }
    if (refusal !== "") this.#refused = true;
    if (text + refusal !== "") {
      this.#enter("text", () => ({ type: "text", text: "", citations: null }));
      this.#delta({ type: "text_delta", text: text + refusal });
    }
    for (const call of calls) this.#call(call);
    return this.#taken();
  }

  end(): FrontEvent[] {
    this.#begin();
    this.#close();
    // State that came with a call, or behind everything: it needs a block to travel in.
    if (!isEmpty(this.#state)) {
      this.#enter("thinking", () => thinkingBlock("", {}));
      this.#close();
    }
    const stop = { stop_reason: stopOf(this.#reading.finish, this.#refused), stop_sequence: null };
    this.#emit({ type: "message_delta", delta: stop, usage: usageOf(this.#reading.usage) });
    this.#emit({ type: "message_stop" });
    return this.#taken();
  }

  fail(failure: StreamFailure): FrontEvent[] {
    const { event = "error", data } = anthropicMessages.failure(failure);
    return [{ event, data }];
  }

  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    const { id, model } = this.#reading;
    this.#emit({ type: "message_start", message: messageOf(id, model, [], null, NO_USAGE) });
  }

  #call({ index, id, name, args }: ReadCall): void {
    if (this.#closedCalls.has(index)) throw new UntranslatableAnswer("calls whose arguments are mixed");
    this.#enter(index, () => ({ type: "tool_use", id, name, input: {} }));
    if (args !== "") this.#delta({ type: "input_json_delta", partial_json: args });
  }

  #enter(what: "thinking" | "text" | number, begin: () => Json): void {
    if (this.#current === what) return;
    this.#close();
    this.#current = what;
    this.#index += 1;
    this.#emit({ type: "content_block_start", index: this.#index, content_block: begin() });
  }

  #close(): void {
    if (this.#current === null) return;
    if (typeof this.#current === "number") this.#closedCalls.add(this.#current);
    if (this.#current === "thinking" && !isEmpty(this.#state)) {
      this.#delta({ type: "signature_delta", signature: sealState(this.#state) });
      this.#state = {};
    }
    this.#current = null;
    this.#emit({ type: "content_block_stop", index: this.#index });
  }

  #delta(delta: Json): void {
    this.#emit({ type: "content_block_delta", index: this.#index, delta });
  }

  #emit(data: Json & { type: string }): void {
    this.#events.push({ event: data.type, data });
  }

  #taken(): FrontEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }
}
