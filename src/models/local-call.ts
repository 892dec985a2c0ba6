/** Calls that are answered without a network. */
import type { Clock } from "../lib/time/clock.ts";
import type { AnswerSink, RunningCall, WireRequest } from "./provider-call.ts";
import type { LocalAnswer, LocalRequest } from "./providers/local-answer.ts";

/**
 * A provider without a network behind the same door as the others: the engine sends to it, is paused by the caller
 * and aborts it as it would a socket. Chunks come one turn of the event loop apart, like those of a stream.
 */
export function localCall(
  answer: (request: LocalRequest) => LocalAnswer,
  clock: Clock,
  { method, path, body }: WireRequest,
  sink: AnswerSink,
): RunningCall {
  const { status, contentType, chunks } = answer({
    ...{ method, path },
    body: body ?? Buffer.alloc(0),
    nowMs: clock.now(),
  });
  const [only = ""] = chunks;
  const length = chunks.length === 1 ? ["Content-Length", String(Buffer.byteLength(only))] : [];
  return replay({ status, headers: ["Content-Type", contentType, ...length], chunks: chunks.map(bytesOf) }, sink);
}

const bytesOf = (text: string): Buffer => Buffer.from(text);

/** An answer that is there already. */
export interface ReadyAnswer {
  status: number;
  headers: string[];
  chunks: readonly Buffer[];
}

export const replay = (answer: ReadyAnswer, sink: AnswerSink): RunningCall => new LocalCall(sink, answer);

class LocalCall implements RunningCall {
  readonly sent = true;
  readonly #sink: AnswerSink;
  readonly #chunks: readonly Buffer[];
  #next = 0;
  #mode: "running" | "paused" | "over" = "running";
  #scheduled: NodeJS.Immediate | null = null;

  constructor(sink: AnswerSink, { status, headers, chunks }: ReadyAnswer) {
    this.#sink = sink;
    this.#chunks = chunks;
    this.#scheduled = setImmediate(() => {
      sink.onHead(status, headers);
      this.#turn();
    });
  }

  abort(): void {
    this.#mode = "over";
    if (this.#scheduled) clearImmediate(this.#scheduled);
  }

  pause(): void {
    if (this.#mode === "running") this.#mode = "paused";
  }

  resume(): void {
    if (this.#mode !== "paused") return;
    this.#mode = "running";
    this.#schedule();
  }

  #schedule(): void {
    this.#scheduled ??= setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#scheduled = null;
    if (this.#mode !== "running") return;
    const chunk = this.#chunks[this.#next];
    if (chunk !== undefined) {
      this.#next += 1;
      this.#sink.onData(chunk);
      if (this.#next < this.#chunks.length) {
        this.#sink.onReadEnd();
        this.#schedule();
        return;
      }
    }
    this.#mode = "over";
    this.#sink.onEnd();
  }
}
