/** The caller of a model: its request body, held in memory, and the events of its connection. */
import { GatewayError } from "../contract/gateway-errors.ts";
import type { Downstream, DownstreamEvents } from "../http/downstream.ts";
import { type HeldBytes, noRoom } from "./held-bytes.ts";

export interface CallerEvents {
  /** The caller can take more of the answer. */
  onDrain(): void;
  onGone(): void;
}

/**
 * The body is held in memory because the model's name in it is replaced and because a failed attempt is sent again;
 * the limit is what the largest providers accept. Its length stays taken from `held` until it is released; of a body
 * that is refused nothing is.
 */
export class ModelCaller implements DownstreamEvents {
  readonly down: Downstream;
  readonly #events: CallerEvents;
  readonly #maxBytes: number;
  readonly #held: HeldBytes;
  readonly #body = Promise.withResolvers<Buffer>();
  #chunks: Buffer[] = [];
  #bytes = 0;
  #mode: "fresh" | "reading" | "read" | "refused" = "fresh";

  constructor(down: Downstream, events: CallerEvents, { maxBytes, held }: { maxBytes: number; held: HeldBytes }) {
    this.down = down;
    this.#events = events;
    this.#maxBytes = maxBytes;
    this.#held = held;
    down.attach(this);
  }

  readBody(): Promise<Buffer> {
    const { down } = this;
    if (this.#mode !== "fresh") return this.#body.promise;
    const encoding = down.header("content-encoding");
    this.#mode = "reading";
    if (encoding && encoding !== "identity") {
      this.#refuse(new GatewayError("BAD_REQUEST", `Send the body uncompressed, not as ${encoding.slice(0, 20)}.`));
    } else if (down.contentLength > this.#maxBytes) this.#refuse(this.#tooLarge());
    else if (down.bodyFraming === "none") this.onRequestEnd();
    else {
      down.sendContinue();
      down.readBody();
    }
    return this.#body.promise;
  }

  /** Frees the body once it is no longer needed. */
  releaseBody(): void {
    this.#held.release(this.#bytes);
    this.#bytes = 0;
  }

  onRequestBody(chunk: Buffer): void {
    if (this.#mode !== "reading") return;
    if (this.#bytes + chunk.length > this.#maxBytes) this.#refuse(this.#tooLarge());
    else if (!this.#held.take(chunk.length)) this.#refuse(noRoom());
    else {
      this.#bytes += chunk.length;
      this.#chunks.push(chunk);
    }
  }

  onRequestEnd(): void {
    if (this.#mode !== "reading") return;
    this.#mode = "read";
    const [only] = this.#chunks;
    this.#body.resolve(this.#chunks.length === 1 && only ? only : Buffer.concat(this.#chunks));
    this.#chunks = [];
  }

  onClientDrain(): void {
    this.#events.onDrain();
  }

  onClientGone(): void {
    if (this.#mode === "reading") this.#refuse(new GatewayError("BAD_REQUEST", "The body ended early."));
    this.#events.onGone();
  }

  #refuse(error: GatewayError): void {
    this.#mode = "refused";
    this.#chunks = [];
    this.releaseBody();
    this.#body.reject(error);
  }

  #tooLarge(): GatewayError {
    return new GatewayError("REQUEST_ENTITY_TOO_LARGE", `The body is larger than ${this.#maxBytes} bytes.`);
  }
}
