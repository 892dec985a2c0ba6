/**
 * Signatures of the requests that the platform POSTs to others. The signature covers the raw body; the timestamp lets a
 * receiver refuse old requests. `verifyWebhook` is the receiver's side.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { MINUTE_MS, SECOND_MS } from "../time/clock.ts";

/** Older requests are refused: they are replayed, or a clock is wrong. */
export const WEBHOOK_AGE_MAX_MS = 5 * MINUTE_MS;

export interface WebhookSignature {
  /** `sha256=` and the HMAC-SHA256 of the body in hex. */
  signature: string;
  /** Seconds since the epoch. */
  timestamp: string;
}

export const signWebhook = (secret: string, body: string, nowMs: number): WebhookSignature => ({
  signature: `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
  timestamp: String(Math.floor(nowMs / SECOND_MS)),
});

export function verifyWebhook(secret: string, body: string, given: WebhookSignature, nowMs: number): boolean {
  const ageMs = Math.abs(nowMs - Number(given.timestamp) * SECOND_MS);
  if (!(ageMs <= WEBHOOK_AGE_MAX_MS)) return false;
  const wanted = Buffer.from(signWebhook(secret, body, nowMs).signature);
  const got = Buffer.from(given.signature);
  return got.length === wanted.length && timingSafeEqual(got, wanted);
}
