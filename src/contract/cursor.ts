/**
 * Page cursors. A cursor is opaque to clients, carries the position to continue from, and is authenticated together
 * with its query: a cursor that was tampered with, made for another query, or is too old is refused.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { canonicalJson } from "../lib/canonical-json.ts";
import { DAY_MS } from "../lib/time/clock.ts";
import { PlatformError } from "./errors.ts";

/** Longest life of a cursor; rows around an older one may have changed too much. */
export const CURSOR_AGE_MAX_MS = DAY_MS;
const CURSOR_LENGTH_MAX = 2048;

export interface CursorCodec {
  encode(position: readonly unknown[], query: unknown, nowMs: number): string;
  decode(cursor: string, query: unknown, nowMs: number): unknown[];
}

export function createCursorCodec(key: Buffer): CursorCodec {
  const sign = (payload: string, query: unknown): Buffer =>
    createHmac("sha256", key).update(payload).update("\0").update(canonicalJson(query)).digest().subarray(0, 16);
  return {
    encode(position, query, nowMs) {
      const payload = Buffer.from(JSON.stringify([nowMs, ...position])).toString("base64url");
      return `${payload}.${sign(payload, query).toString("base64url")}`;
    },
    decode(cursor, query, nowMs) {
      const [payload = "", signature = ""] = cursor.length <= CURSOR_LENGTH_MAX ? cursor.split(".") : [];
      const given = Buffer.from(signature, "base64url");
      const expected = sign(payload, query);
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
        throw refuse("was made for another query, or was changed");
      }
      const [issuedAt, ...position] = JSON.parse(Buffer.from(payload, "base64url").toString()) as unknown[];
      if (typeof issuedAt !== "number" || nowMs - issuedAt > CURSOR_AGE_MAX_MS) throw refuse("is older than 24 hours");
      return position;
    },
  };
}

const refuse = (why: string): PlatformError =>
  new PlatformError(
    "invalid_cursor",
    `cursor ${why}. Start again without a cursor, with the same parameters throughout.`,
  );
