/** A stream of events to a client, written only as fast as the client reads. */
import type { Downstream } from "../../http/downstream.ts";
import type { HeaderRules } from "../../http/header-rules.ts";
import { formatSseEvent } from "../../lib/network/sse.ts";

export class ClientStream {
  readonly #down: Downstream;
  /** Writers that wait for the client, of which there are several where servers share the stream; null = nobody waits. */
  #waiting: PromiseWithResolvers<void> | null = null;
  #isGone = false;
  bytesOut = 0;

  /** `gone` is called when the client disconnects. */
  constructor(down: Downstream, gone: () => void) {
    this.#down = down;
    down.attach({
      onRequestBody() {},
      onRequestEnd() {},
      onClientDrain: () => this.#goOn(),
      onClientGone: () => {
        this.#isGone = true;
        this.#goOn();
        gone();
      },
    });
  }

  begin(rules: HeaderRules, headers: readonly string[]): void {
    const own = ["Content-Type", "text/event-stream", "Cache-Control", "no-cache, no-transform"];
    this.#down.head(200, "OK", [...own, ...rules.source, ...headers]);
    this.#down.flush();
  }

  /** Nothing is sent to a client that is gone, and nobody waits for it. */
  async write(message: unknown): Promise<void> {
    if (this.#isGone) return;
    const event = Buffer.from(formatSseEvent(JSON.stringify(message), "message"));
    this.bytesOut += event.length;
    const takesMore = this.#down.write(event);
    if ((this.#down.flush() && takesMore) || this.#isGone) return;
    this.#waiting ??= Promise.withResolvers<void>();
    await this.#waiting.promise;
  }

  end(): void {
    this.#down.end([]);
  }

  #goOn(): void {
    this.#waiting?.resolve();
    this.#waiting = null;
  }
}
