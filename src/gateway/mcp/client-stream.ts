/** A stream of events to a client, written only as fast as the client reads. */
import type { Downstream } from "../../http/downstream.ts";
import type { HeaderRules } from "../../http/header-rules.ts";
import { formatSseEvent } from "../../lib/network/sse.ts";

export class ClientStream {
  readonly #down: Downstream;
  #drained = Promise.withResolvers<void>();
  bytesOut = 0;

  /** `gone` is called when the client disconnects. */
  constructor(down: Downstream, gone: () => void) {
    this.#down = down;
    down.attach({
      onRequestBody() {},
      onRequestEnd() {},
      onClientDrain: () => this.#drained.resolve(),
      onClientGone: () => {
        this.#drained.resolve();
        gone();
      },
    });
  }

  begin(rules: HeaderRules, headers: readonly string[]): void {
    const own = ["Content-Type", "text/event-stream", "Cache-Control", "no-cache, no-transform"];
    this.#down.head(200, "OK", [...own, ...rules.source, ...headers]);
    this.#down.flush();
  }

  async write(message: unknown): Promise<void> {
    const event = Buffer.from(formatSseEvent(JSON.stringify(message), "message"));
    this.bytesOut += event.length;
    this.#drained = Promise.withResolvers<void>();
    const takesMore = this.#down.write(event);
    if (!this.#down.flush() || !takesMore) await this.#drained.promise;
  }

  end(): void {
    this.#down.end([]);
  }
}
