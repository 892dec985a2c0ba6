/** A chat stream as the events of the Responses API. */
import type { StreamFailure } from "../../dialect.ts";
import { openaiResponses } from "../../openai/dialects.ts";
import { ChatReading, idOf, type ReadCall } from "../chat-reading.ts";
import type { FrontContext, FrontEvent, FrontStream, Json } from "../front.ts";
import { isEmpty, mergeStates, type ProviderState } from "../provider-state.ts";
import { callItem, messageItem, outcomeOf, reasoningItem, responseOf, textPart } from "./answer.ts";

interface OpenItem {
  kind: "reasoning" | "message" | "refusal" | "call";
  id: string;
  index: number;
  text: string;
  call: ReadCall | null;
}

type Placed = { item_id: string; output_index: number };

export class ResponseStream implements FrontStream {
  readonly #context: FrontContext;
  readonly #reading: ChatReading;
  readonly #output: Json[] = [];
  readonly #calls = new Map<number, OpenItem>();
  /** Thoughts or text: what goes on until something else begins. */
  #current: OpenItem | null = null;
  #state: ProviderState = {};
  #sequence = 0;
  #items = 0;
  #events: FrontEvent[] = [];

  constructor(context: FrontContext) {
    this.#context = context;
    this.#reading = new ChatReading(context.model);
  }

  push(chunk: unknown): FrontEvent[] {
    const { reasoning, text, refusal, calls, state } = this.#reading.take(chunk);
    if (this.#sequence === 0) this.#begin();
    this.#state = mergeStates(this.#state, state);
    if (reasoning !== "") this.#add("reasoning", reasoning);
    if (text !== "") this.#add("message", text);
    if (refusal !== "") this.#add("refusal", refusal);
    for (const call of calls) this.#addCall(call);
    return this.#taken();
  }

  end(): FrontEvent[] {
    if (this.#sequence === 0) this.#begin();
    this.#closeCurrent();
    for (const item of this.#calls.values()) this.#closeCall(item);
    if (!isEmpty(this.#state)) this.#closeReasoning(this.#open("reasoning", null));
    const outcome = outcomeOf(this.#reading.finish);
    const end = outcome.status === "completed" ? "response.completed" : "response.incomplete";
    this.#emit(end, { response: this.#response(outcome, true) });
    return this.#taken();
  }

  fail(failure: StreamFailure): FrontEvent[] {
    const { event = "error", data } = openaiResponses.failure(failure);
    return [{ event, data: { ...(data as Json), sequence_number: this.#sequence } }];
  }

  #begin(): void {
    const response = this.#response({ status: "in_progress", incomplete_details: null }, false);
    this.#emit("response.created", { response });
    this.#emit("response.in_progress", { response });
  }

  #response(outcome: { status: string; incomplete_details: Json | null }, isOver: boolean): Json {
    const { id, model, usage } = this.#reading;
    // Items are told in the order in which they began, which is not always the one in which they ended.
    const output = this.#output.filter((item) => item !== undefined);
    return responseOf(this.#context, { id, model, output, usage: isOver ? usage : null, ...outcome });
  }

  #add(kind: "reasoning" | "message" | "refusal", delta: string): void {
    let item = this.#current;
    if (item?.kind !== kind) {
      this.#closeCurrent();
      item = this.#open(kind, null);
      this.#current = item;
      if (kind === "reasoning")
        this.#emit("response.reasoning_summary_part.added", { ...summaryOf(item), part: summary("") });
    }
    item.text += delta;
    if (kind === "reasoning") this.#emit("response.reasoning_summary_text.delta", { ...summaryOf(item), delta });
    else {
      const type = kind === "message" ? "output_text" : "refusal";
      const more = kind === "message" ? { logprobs: [] } : {};
      this.#emit(`response.${type}.delta`, { ...place(item), content_index: 0, delta, ...more });
    }
  }

  #addCall(call: ReadCall): void {
    let item = this.#calls.get(call.index);
    if (!item) {
      this.#closeCurrent();
      item = this.#open("call", { ...call, args: "" });
      this.#calls.set(call.index, item);
    }
    if (call.args === "") return;
    item.text += call.args;
    this.#emit("response.function_call_arguments.delta", { ...place(item), delta: call.args });
  }

  #open(kind: OpenItem["kind"], call: ReadCall | null): OpenItem {
    const index = this.#items;
    this.#items += 1;
    const prefix = kind === "call" ? "fc_" : kind === "reasoning" ? "rs_" : "msg_";
    const item: OpenItem = { kind, id: idOf(prefix, this.#reading.id, String(index)), index, text: "", call };
    const added = call
      ? callItem(item.id, call, "in_progress")
      : kind === "reasoning"
        ? reasoningItem(item.id, "", {})
        : messageItem(item.id, [], "in_progress");
    this.#emit("response.output_item.added", { output_index: index, item: added });
    if (kind === "message" || kind === "refusal")
      this.#emit("response.content_part.added", { ...place(item), content_index: 0, part: partOf(kind, "") });
    return item;
  }

  #closeCurrent(): void {
    const item = this.#current;
    this.#current = null;
    if (item?.kind === "reasoning") this.#closeReasoning(item);
    else if (item) this.#closeMessage(item);
  }

  #closeReasoning(item: OpenItem): void {
    if (item.text !== "") {
      this.#emit("response.reasoning_summary_text.done", { ...summaryOf(item), text: item.text });
      this.#emit("response.reasoning_summary_part.done", { ...summaryOf(item), part: summary(item.text) });
    }
    this.#done(item, reasoningItem(item.id, item.text, this.#state));
    this.#state = {};
  }

  #closeMessage(item: OpenItem): void {
    const part = partOf(item.kind, item.text);
    const where = { ...place(item), content_index: 0 };
    if (item.kind === "message") this.#emit("response.output_text.done", { ...where, text: item.text, logprobs: [] });
    else this.#emit("response.refusal.done", { ...where, refusal: item.text });
    this.#emit("response.content_part.done", { ...where, part });
    this.#done(item, messageItem(item.id, [part]));
  }

  #closeCall(item: OpenItem): void {
    const call = { ...(item.call as ReadCall), args: item.text || "{}" };
    this.#emit("response.function_call_arguments.done", { ...place(item), name: call.name, arguments: call.args });
    this.#done(item, callItem(item.id, call));
  }

  #done(item: OpenItem, whole: Json): void {
    this.#output[item.index] = whole;
    this.#emit("response.output_item.done", { output_index: item.index, item: whole });
  }

  #emit(type: string, members: Json): void {
    this.#events.push({ event: type, data: { type, ...members, sequence_number: this.#sequence } });
    this.#sequence += 1;
  }

  #taken(): FrontEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }
}

const place = ({ id, index }: OpenItem): Placed => ({ item_id: id, output_index: index });
const summaryOf = (item: OpenItem): Placed & { summary_index: 0 } => ({ ...place(item), summary_index: 0 });
const summary = (text: string): Json => ({ type: "summary_text", text });
const partOf = (kind: OpenItem["kind"], text: string): Json =>
  kind === "message" ? textPart(text) : { type: "refusal", refusal: text };
