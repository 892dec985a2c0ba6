/**
 * One output stream of a worker during an execution. The worker writes the mark of the execution into the stream, with
 * one more byte: before each result (a fence), so that the result comes after the output before it, and at the end.
 */
import { StringDecoder } from "node:string_decoder";

const FENCE = 1;

export class MarkedOutput {
  readonly #mark: Buffer;
  readonly #decoder = new StringDecoder("utf8");
  /** The end of the bytes so far, which may be the beginning of a mark. */
  #held: Buffer = Buffer.alloc(0);
  #ended = false;

  constructor(mark: string) {
    this.#mark = Buffer.from(mark);
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** The texts that the chunk completes; there is a fence between each two of them. */
  take(chunk: Buffer): string[] {
    if (this.#ended) return [""];
    const texts: string[] = [];
    let bytes = this.#held.byteLength === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = Buffer.alloc(0);
    for (;;) {
      const at = bytes.indexOf(this.#mark);
      const kind = at < 0 ? undefined : bytes[at + this.#mark.byteLength];
      if (kind === undefined) {
        const upTo = at < 0 ? bytes.byteLength - this.#beginningAtEnd(bytes) : at;
        this.#held = Buffer.from(bytes.subarray(upTo));
        return [...texts, this.#decoder.write(bytes.subarray(0, upTo))];
      }
      texts.push(this.#decoder.write(bytes.subarray(0, at)));
      this.#ended = kind !== FENCE;
      if (this.#ended) return texts;
      bytes = bytes.subarray(at + this.#mark.byteLength + 1);
    }
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
