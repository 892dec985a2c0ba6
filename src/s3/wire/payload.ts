/** The body of a request: its frames taken off, counted, and compared with every digest that the client sent. */
import { createHash } from "node:crypto";
import { type ChecksumName, checksumOfHeader, headerOf, requireWellFormed } from "../checksums/checksums.ts";
import type { Written } from "../files/staged-file.ts";
import { unframed } from "../signature/chunks.ts";
import type { Seed } from "../signature/verify.ts";
import { S3Error } from "./s3-error.ts";
import type { S3Request } from "./s3-request.ts";

export const UNSIGNED = "UNSIGNED-PAYLOAD";
/** S3's limit of one request with data, sent or copied. */
export const REQUEST_BYTES_MAX = 5 * 1024 ** 3;

/** Kinds of framed bodies, by the value of x-amz-content-sha256. */
const FRAMED: Readonly<Record<string, { isSigned: boolean; hasTrailers: boolean }>> = {
  "STREAMING-AWS4-HMAC-SHA256-PAYLOAD": { isSigned: true, hasTrailers: false },
  "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER": { isSigned: true, hasTrailers: true },
  "STREAMING-UNSIGNED-PAYLOAD-TRAILER": { isSigned: false, hasTrailers: true },
};

export interface Payload {
  bytes: number;
  source: AsyncIterable<Buffer>;
  /** Checksums that the client sends with the body. */
  checksums: readonly ChecksumName[];
  /** Values of the checksums that came in headers, and of those in trailers once the source has ended. */
  sent: ReadonlyMap<ChecksumName, string>;
  /** Throws unless what was written is what the client sent. Call it after the source has ended. */
  requireSame(written: Written): void;
}

/** `hash`: what the request says of its body, as it was signed. */
export function payloadOf(request: S3Request, hash: string, seed: Seed, body: AsyncIterable<Buffer>): Payload {
  const { header } = request;
  const framed = FRAMED[hash];
  const bytes = lengthOf(header(framed ? "x-amz-decoded-content-length" : "content-length"));
  const sent = new Map<ChecksumName, string>();
  const keep = (name: string, value: string): void => {
    const checksum = checksumOfHeader(name);
    if (checksum === null) return;
    requireWellFormed(checksum, value);
    sent.set(checksum, value);
  };
  for (const name of request.headers.keys()) keep(name, header(name) ?? "");
  const announced = (header("x-amz-trailer") ?? "")
    .split(",")
    .map((name) => checksumOfHeader(name.trim().toLowerCase()));
  const checksums = [...new Set([...sent.keys(), ...announced.filter((name) => name !== null)])];
  const md5 = md5Of(header("content-md5"));
  const plain = framed
    ? unframed(body, { seed: framed.isSigned ? seed : null, hasTrailers: framed.hasTrailers, onTrailer: keep })
    : hash === UNSIGNED
      ? body
      : hashed(body, hash);
  return {
    bytes,
    checksums,
    sent,
    source: limited(plain, bytes),
    requireSame(written) {
      if (written.bytes !== bytes) throw incomplete();
      if (md5 !== null && md5 !== written.md5)
        throw new S3Error("BadDigest", "The Content-MD5 you specified did not match what we received.");
      for (const name of checksums) {
        const value = sent.get(name);
        if (value === undefined)
          throw new S3Error("InvalidRequest", `The trailer ${headerOf(name)} was announced and not sent.`);
        if (value !== written.checksums.get(name))
          throw new S3Error("BadDigest", `The ${name} you specified did not match what we received.`);
      }
    },
  };
}

/** A small body, such as a document; refused above `max`. */
export async function textOf({ bytes, source, requireSame }: Payload, max: number, sum: (text: Buffer) => Written) {
  if (bytes > max) throw new S3Error("EntityTooLarge", `The document has more than ${max} bytes.`);
  const parts: Buffer[] = [];
  for await (const part of source) parts.push(part);
  const all = Buffer.concat(parts);
  requireSame(sum(all));
  return all.toString("utf8");
}

function lengthOf(text: string | undefined): number {
  if (text === undefined) throw new S3Error("MissingContentLength", "You must provide the Content-Length HTTP header.");
  const bytes = Number(text);
  if (!/^\d{1,15}$/.test(text)) throw new S3Error("InvalidArgument", "The length of the body is not a number.");
  if (bytes > REQUEST_BYTES_MAX)
    throw new S3Error("EntityTooLarge", "Your proposed upload exceeds the maximum allowed size", {
      MaxSizeAllowed: String(REQUEST_BYTES_MAX),
    });
  return bytes;
}

/** Content-MD5 in hexadecimal digits. */
function md5Of(text: string | undefined): string | null {
  if (text === undefined) return null;
  const bytes = Buffer.from(text, "base64");
  if (bytes.length !== 16) throw new S3Error("InvalidDigest", "The Content-MD5 you specified is not valid.");
  return bytes.toString("hex");
}

async function* hashed(source: AsyncIterable<Buffer>, expected: string): AsyncGenerator<Buffer> {
  if (!/^[0-9a-f]{64}$/.test(expected))
    throw new S3Error("InvalidArgument", "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, a STREAMING- word or a hash.");
  const hash = createHash("sha256");
  for await (const chunk of source) {
    hash.update(chunk);
    yield chunk;
  }
  if (hash.digest("hex") !== expected)
    throw new S3Error(
      "XAmzContentSHA256Mismatch",
      "The provided 'x-amz-content-sha256' header does not match what was computed.",
    );
}

async function* limited(source: AsyncIterable<Buffer>, max: number): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.length;
    if (bytes > max) throw incomplete();
    yield chunk;
  }
}

const incomplete = (): S3Error =>
  new S3Error("IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header");
