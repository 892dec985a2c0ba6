/**
 * A browser in which a person has signed in before. Its cookie says so, with a seal that only the platform can make,
 * for that person only. Tries from such a browser are counted separately, so that guesses from elsewhere cannot use
 * them up. The cookie grants nothing else: a known browser needs the password like any other.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { randomWord } from "../lib/ids.ts";
import { DAY_MS, SECOND_MS } from "../lib/time/clock.ts";

const COOKIE = "_known";
const KEPT_SECONDS = (180 * DAY_MS) / SECOND_MS;
const VALUE = /^([0-9a-z]{1,64})\.([\w-]{1,128})$/;

type KeyFor = (purpose: string) => Buffer;

/** The id of a browser that is known for this person; null when it is not known. */
export function knownBrowser(keyFor: KeyFor, cookies: string | undefined, sub: string): string | null {
  for (const [, id = "", seal = ""] of valuesOf(cookies)) if (isSame(seal, sealOf(keyFor, id, sub))) return id;
  return null;
}

/** The `Set-Cookie` line for a browser in which this person has just signed in. */
export function rememberBrowser(keyFor: KeyFor, cookies: string | undefined, sub: string, isSecure: boolean): string {
  const id = knownBrowser(keyFor, cookies, sub) ?? randomWord(24);
  const value = `${id}.${sealOf(keyFor, id, sub)}`;
  return `${COOKIE}=${value}; Path=/oauth; Max-Age=${KEPT_SECONDS}; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
}

const sealOf = (keyFor: KeyFor, id: string, sub: string): string =>
  createHmac("sha256", keyFor("known-browsers")).update(`${id}\0${sub}`).digest("base64url");

function valuesOf(cookies = ""): RegExpExecArray[] {
  return cookies.split(";").flatMap((pair) => {
    const [name, value = ""] = pair.trim().split("=", 2);
    const match = name === COOKIE ? VALUE.exec(value) : null;
    return match ? [match] : [];
  });
}

const isSame = (given: string, expected: string): boolean =>
  given.length === expected.length && timingSafeEqual(Buffer.from(given), Buffer.from(expected));
