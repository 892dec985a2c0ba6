/** Checks the signature of a request, and keeps what the signatures of its chunks continue from. */
import { timingSafeEqual } from "node:crypto";
import { S3Error } from "../wire/s3-error.ts";
import { canonicalRequest, type Signable, signatureOf, signingKey, stringToSign } from "./canonical.ts";
import { type Presented, timeMs } from "./credentials.ts";

/** Clocks of client and server may differ by this much. */
const SKEW_MS = 15 * 60_000;

/** Headers that are covered without being signed: the payload's hash stands in the canonical request itself. */
const COVERED = new Set(["x-amz-content-sha256"]);

export interface Seed {
  key: Buffer;
  time: string;
  scope: Presented["scope"];
  signature: string;
}

export function requireSignature(
  request: Omit<Signable, "signedHeaders">,
  presented: Presented,
  secret: string,
  nowMs: number,
): Seed {
  requireInTime(presented, nowMs);
  const unsigned = [...request.headers.keys()].filter(
    (name) => name.startsWith("x-amz-") && !COVERED.has(name) && !presented.signedHeaders.includes(name),
  );
  if (unsigned.length > 0)
    throw new S3Error("AccessDenied", "There were headers present in the request which were not signed.", {
      HeadersNotSigned: unsigned.join(", "),
    });
  const { scope, time, signature, signedHeaders } = presented;
  const key = signingKey(secret, scope);
  const canonical = canonicalRequest({ ...request, signedHeaders });
  const expected = signatureOf(key, stringToSign(canonical, time, scope));
  if (!isSame(expected, signature))
    throw new S3Error(
      "SignatureDoesNotMatch",
      "The signature of the request is not the one that the server computes. Check the secret access key and the signing method.",
      { CanonicalRequest: canonical },
    );
  return { key, time, scope, signature };
}

export const isSame = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));

function requireInTime({ time, validSeconds }: Presented, nowMs: number): void {
  const signedAtMs = timeMs(time);
  const late = nowMs - signedAtMs;
  const details = { RequestTime: time, ServerTime: new Date(nowMs).toISOString() };
  if (!(late >= -SKEW_MS) || (validSeconds === null && late > SKEW_MS))
    throw new S3Error(
      "RequestTimeTooSkewed",
      "The time of the request differs by more than 15 minutes from the server's.",
      details,
    );
  if (validSeconds !== null && late > validSeconds * 1000)
    throw new S3Error("AccessDenied", "Request has expired", details);
}
