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
  return new LocalCall(sink, answer({ method, path, body: body ?? Buffer.alloc(0), nowMs: clock.now() }));
}

class LocalCall implements RunningCall {
  readonly sent = true;
  readonly #sink: AnswerSink;
  readonly #chunks: string[];
  #next = 0;
  #mode: "running" | "paused" | "over" = "running";
  #scheduled: NodeJS.Immediate | null = null;

  constructor(sink: AnswerSink, { status, contentType, chunks }: LocalAnswer) {
    this.#sink = sink;
    this.#chunks = chunks;
    this.#scheduled = setImmediate(() => {
      const [only = ""] = chunks;
      const length = chunks.length === 1 ? ["Content-Length", String(Buffer.byteLength(only))] : [];
      sink.onHead(status, ["Content-Type", contentType, ...length]);
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
      this.#sink.onData(Buffer.from(chunk));
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
