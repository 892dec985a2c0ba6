import type { Dispatcher } from "undici";
import type { Clock } from "../../lib/clock.ts";
import type { LocalAnswer, LocalRequest } from "../providers/local-answer.ts";

/**
 * A provider without a network behind the same door as the others: the engine dispatches to it, is paused by the
 * caller and aborts it as it would a socket. Chunks come one turn of the event loop apart, like those of a stream.
 */
export function localDispatcher(
  answer: (request: LocalRequest) => LocalAnswer,
  clock: Clock,
): Pick<Dispatcher, "dispatch"> {
  return {
    dispatch(options, handler) {
      const { status, contentType, chunks } = answer({
        method: options.method,
        path: options.path,
        body: Buffer.isBuffer(options.body) ? options.body : Buffer.alloc(0),
        nowMs: clock.now(),
      });
      new LocalExchange(handler, chunks).start(status, contentType);
      return true;
    },
  };
}

class LocalExchange implements Dispatcher.DispatchController {
  readonly #handler: Dispatcher.DispatchHandler;
  readonly #chunks: string[];
  #next = 0;
  aborted = false;
  paused = false;
  reason: Error | null = null;

  constructor(handler: Dispatcher.DispatchHandler, chunks: string[]) {
    this.#handler = handler;
    this.#chunks = chunks;
  }

  start(status: number, contentType: string): void {
    this.#handler.onRequestStart?.(this, null);
    setImmediate(() => {
      if (this.aborted) return;
      const [only = ""] = this.#chunks;
      const length = this.#chunks.length === 1 ? { "content-length": String(Buffer.byteLength(only)) } : {};
      this.#handler.onResponseStart?.(this, status, { "content-type": contentType, ...length });
      this.#turn();
    });
  }

  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.#handler.onResponseError?.(this, reason);
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    if (this.aborted || this.paused) return;
    const chunk = this.#chunks[this.#next];
    if (chunk === undefined) {
      this.#handler.onResponseEnd?.(this, {});
      return;
    }
    this.#next += 1;
    this.#handler.onResponseData?.(this, Buffer.from(chunk));
    if (!this.paused) setImmediate(() => this.#turn());
  }
}
