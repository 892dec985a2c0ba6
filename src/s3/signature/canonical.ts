/** The canonical form of a request and the signatures over it: AWS Signature Version 4, as S3 uses it. */
import { createHash, createHmac } from "node:crypto";

export const ALGORITHM = "AWS4-HMAC-SHA256";
export const EMPTY_SHA256 = createHash("sha256").digest("hex");

export interface Signable {
  method: string;
  /** Decoded path. */
  path: string;
  /** Decoded pairs; the signature itself is not among them. */
  query: readonly (readonly [string, string])[];
  /** Every value of every header, by lower-case name. */
  headers: ReadonlyMap<string, readonly string[]>;
  signedHeaders: readonly string[];
  payloadHash: string;
}

export interface Scope {
  date: string;
  region: string;
  service: string;
}

export const canonicalRequest = ({ method, path, query, headers, signedHeaders, payloadHash }: Signable): string =>
  [
    method,
    encoded(path, "/"),
    query
      .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
      .sort()
      .join("&"),
    ...signedHeaders.map((name) => `${name}:${(headers.get(name) ?? []).map(collapsed).join(",")}`),
    "",
    signedHeaders.join(";"),
    payloadHash,
  ].join("\n");

export const scopeText = ({ date, region, service }: Scope): string => `${date}/${region}/${service}/aws4_request`;

export const stringToSign = (canonical: string, time: string, scope: Scope): string =>
  [ALGORITHM, time, scopeText(scope), sha256(canonical)].join("\n");

export function signingKey(secret: string, { date, region, service }: Scope): Buffer {
  const parts = [date, region, service, "aws4_request"];
  return parts.reduce<Buffer>((key, part) => hmac(key, part), Buffer.from(`AWS4${secret}`));
}

export const signatureOf = (key: Buffer, text: string): string => hmac(key, text).toString("hex");

export const sha256 = (text: string | Buffer): string => createHash("sha256").update(text).digest("hex");

const hmac = (key: Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();

/** Percent-encodes all but the unreserved characters of RFC 3986 and those of `plain`. */
export const encoded = (text: string, plain = ""): string =>
  encodeURIComponent(text)
    .replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)
    .replace(/%2F/g, plain === "/" ? "/" : "%2F");

const collapsed = (value: string): string => value.trim().replace(/\s+/g, " ");
