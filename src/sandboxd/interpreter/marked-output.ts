/** One output stream of a worker during an execution: text up to the mark that the worker writes at the end. */
import { StringDecoder } from "node:string_decoder";

export class MarkedOutput {
  readonly #mark: Buffer;
  readonly #decoder = new StringDecoder("utf8");
  /** The end of the bytes so far, which may be the beginning of the mark. */
  #held: Buffer = Buffer.alloc(0);
  #ended = false;

  constructor(mark: string) {
    this.#mark = Buffer.from(mark);
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** The text that the chunk completes. */
  take(chunk: Buffer): string {
    if (this.#ended) return "";
    const bytes = this.#held.byteLength === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const at = bytes.indexOf(this.#mark);
    this.#ended = at >= 0;
    const upTo = this.#ended ? at : bytes.byteLength - this.#beginningAtEnd(bytes);
    this.#held = this.#ended ? Buffer.alloc(0) : Buffer.from(bytes.subarray(upTo));
    return this.#decoder.write(bytes.subarray(0, upTo));
  }

  /** The text that is left when the worker has ended without a mark. */
  rest(): string {
    return this.#ended ? "" : this.#decoder.write(this.#held) + this.#decoder.end();
  }

  /** How many bytes at the end are the beginning of the mark. */
  #beginningAtEnd(bytes: Buffer): number {
    const first = this.#mark[0] ?? 0;
    const from = Math.max(0, bytes.byteLength - this.#mark.byteLength + 1);
    for (let at = bytes.indexOf(first, from); at >= 0; at = bytes.indexOf(first, at + 1)) {
      const length = bytes.byteLength - at;
      if (bytes.subarray(at).equals(this.#mark.subarray(0, length))) return length;
    }
    return 0;
  }
}
