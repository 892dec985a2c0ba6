/**
 * Takes the frames off a body with `content-encoding: aws-chunked`: SIZE[;chunk-signature=…] CRLF DATA CRLF …, then
 * trailers. Data goes on as it comes; a chunk whose signature is wrong throws at its end, and the caller then discards
 * everything.
 */
import { createHash, type Hash } from "node:crypto";
import { S3Error } from "../wire/s3-error.ts";
import { EMPTY_SHA256, scopeText, sha256, signatureOf } from "./canonical.ts";
import { isSame, type Seed } from "./verify.ts";

export interface ChunkedBody {
  /** Signs the chunks; null where chunks are not signed. */
  seed: Seed | null;
  /** Whether trailers follow the last chunk. */
  hasTrailers: boolean;
  /** Gets the trailers before the last data is acknowledged. */
  onTrailer(name: string, value: string): void;
}

/** Bytes of a frame's head, and of all trailers together. */
const LINE_BYTES_MAX = 4096;
const LINES_MAX = 32;

export async function* unframed(
  source: AsyncIterable<Buffer>,
  { seed, hasTrailers, onTrailer }: ChunkedBody,
): AsyncGenerator<Buffer> {
  const input = new Input(source);
  let previous = seed?.signature ?? "";
  for (;;) {
    const { size, signature } = headOf(await input.line(), seed !== null);
    const hash = seed === null ? null : createHash("sha256");
    for (let left = size; left > 0; ) {
      const data = await input.some(left);
      left -= data.length;
      hash?.update(data);
      yield data;
    }
    if (seed && hash) previous = requireChunk(seed, previous, signature, hash);
    if (size === 0) break;
    if ((await input.line()) !== "") throw broken();
  }
  if (hasTrailers) await readTrailers(input, seed, previous, onTrailer);
  else if ((await input.line()) !== "") throw broken();
}

function headOf(line: string, isSigned: boolean): { size: number; signature: string } {
  const [, hex = "", signature = ""] = /^([0-9a-fA-F]{1,12})(?:;chunk-signature=([0-9a-f]{64}))?$/.exec(line) ?? [];
  if (hex === "" || (isSigned && signature === "")) throw broken();
  return { size: Number.parseInt(hex, 16), signature };
}

function requireChunk(seed: Seed, previous: string, signature: string, hash: Hash): string {
  const { key, time, scope } = seed;
  const parts = ["AWS4-HMAC-SHA256-PAYLOAD", time, scopeText(scope), previous, EMPTY_SHA256, hash.digest("hex")];
  if (!isSame(signatureOf(key, parts.join("\n")), signature)) throw wrong();
  return signature;
}

async function readTrailers(
  input: Input,
  seed: Seed | null,
  previous: string,
  onTrailer: ChunkedBody["onTrailer"],
): Promise<void> {
  const trailers: [string, string][] = [];
  let signature: string | null = null;
  for (let lines = 0; ; lines += 1) {
    const line = await input.line();
    if (line === "") break;
    const [name = "", value] = line.split(/:(.*)/s, 2);
    if (value === undefined || lines > LINES_MAX) throw broken();
    if (name.toLowerCase() === "x-amz-trailer-signature") signature = value.trim();
    else trailers.push([name.toLowerCase().trim(), value.trim()]);
  }
  if (seed) {
    const { key, time, scope } = seed;
    const text = trailers.map(([name, value]) => `${name}:${value}\n`).join("");
    const parts = ["AWS4-HMAC-SHA256-TRAILER", time, scopeText(scope), previous, sha256(text)];
    if (signature === null || !isSame(signatureOf(key, parts.join("\n")), signature)) throw wrong();
  }
  for (const [name, value] of trailers) onTrailer(name, value);
}

/** The bytes of the request, by line or by length. */
class Input {
  readonly #source: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  async line(): Promise<string> {
    for (;;) {
      const end = this.#rest.indexOf("\n");
      if (end >= 0) {
        const line = this.#rest.toString("latin1", 0, end);
        this.#rest = this.#rest.subarray(end + 1);
        return line.replace(/\r$/, "");
      }
      if (this.#rest.length > LINE_BYTES_MAX) throw broken();
      this.#rest = Buffer.concat([this.#rest, await this.#next()]);
    }
  }

  /** At least one byte, at most `max`. */
  async some(max: number): Promise<Buffer> {
    if (this.#rest.length === 0) this.#rest = await this.#next();
    const taken = this.#rest.subarray(0, max);
    this.#rest = this.#rest.subarray(taken.length);
    return taken;
  }

  async #next(): Promise<Buffer> {
    for (;;) {
      const { done, value } = await this.#source.next();
      if (done) throw broken();
      if (value.length > 0) return value;
    }
  }
}

const broken = (): S3Error => new S3Error("IncompleteBody", "The chunks of the body are cut off or malformed.");
const wrong = (): S3Error =>
  new S3Error("SignatureDoesNotMatch", "The signature of a chunk is not the one that the server computes.");
