/** A request of the platform to a model of the workspace, on behalf of a caller, for the embedding of one text. */
import { HeldRequest } from "../http/held-request.ts";

/** The longest embeddings are some 100 KB of JSON. */
const ANSWER_BYTES_MAX = 1024 * 1024;

export class EmbeddingRequest extends HeldRequest {
  readonly #chunks: Buffer[] = [];
  readonly #answered = Promise.withResolvers<unknown>();
  #status = 0;
  #bytes = 0;

  constructor(text: string) {
    const body = Buffer.from(JSON.stringify({ input: text, encoding_format: "float" }));
    super({ method: "POST", rawHeaders: ["content-type", "application/json"], body });
  }

  /** The parsed answer; rejects when there is none. */
  get answer(): Promise<unknown> {
    return this.#answered.promise;
  }

  /** Nobody waits for the answer any more. */
  leave(): void {
    this.#answered.reject(new Error("the caller disconnected"));
    this.events?.onClientGone();
  }

  head(status: number): void {
    this.#status = status;
  }

  write(chunk: Buffer): boolean {
    this.#bytes += chunk.length;
    if (this.#bytes <= ANSWER_BYTES_MAX) this.#chunks.push(Buffer.from(chunk));
    return true;
  }

  end(): void {
    const isWhole = this.#status === 200 && this.#bytes <= ANSWER_BYTES_MAX;
    try {
      if (!isWhole) throw new Error(`the model of embeddings answered with status ${this.#status}`);
      this.#answered.resolve(JSON.parse(Buffer.concat(this.#chunks).toString("utf8")));
    } catch (error) {
      this.#answered.reject(error);
    }
  }

  destroy(): void {
    this.#answered.reject(new Error("the answer of the model of embeddings broke off"));
  }
}
