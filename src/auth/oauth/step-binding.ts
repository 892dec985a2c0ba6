/**
 * Ties a sign-in to the browser that began it. Each browser has a word of its own in a cookie; the authorization
 * server's record of a step keeps a hash of it, and is found by that browser only: whoever began a step is who takes,
 * leaves and resumes it. Forms carry a secret made of the step, its question and that word.
 *
 * Over TLS the cookie's name starts with `__Host-`: no other host of the site can put its own in a person's browser.
 * On plain HTTP there is no such cookie, so the word of a browser that shares its site with workloads may be theirs;
 * `isSafe` tells, and what would need no further click asks for one.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { cookieMark, HOST_PREFIX } from "../../contract/platform-cookies.ts";
import { randomSecret } from "../../lib/ids.ts";

const WORD = /^[\w-]{20,128}$/;
/** Lifetime of the cookie: the longest that browsers allow. It is worth nothing by itself. */
const KEPT_SECONDS = 400 * 24 * 3600;

export interface BoundBrowser {
  /** Hash of the browser's word. */
  id: string;
  /** The device code that the person came with. */
  userCode: string | null;
}

const current = new AsyncLocalStorage<BoundBrowser>();

/** Runs `work` of the authorization server on behalf of one browser. */
export const inBrowser = <T>(browser: BoundBrowser, work: () => T): T => current.run(browser, work);

/** The browser of the current request; undefined for requests of programs. */
export const currentBrowser = (): BoundBrowser | undefined => current.getStore();

export const cookieNames = (brand: string, isSecure: boolean) => {
  const start = `${isSecure ? HOST_PREFIX : ""}${cookieMark(brand)}`;
  return { session: `${start}session`, browser: `${start}browser` };
};

/** The browser's id, and the `Set-Cookie` line for a browser without a word. */
export function identifyBrowser(
  cookies: string | undefined,
  brand: string,
  isSecure: boolean,
): { id: string; setCookie: string | null } {
  const name = cookieNames(brand, isSecure).browser;
  const words = (cookies ?? "")
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  const [word = ""] = words;
  // Two words: another host has set its own beside the browser's, and they cannot be told apart. Start over.
  if (words.length === 1 && WORD.test(word)) return { id: idOf(word), setCookie: null };
  const fresh = randomSecret();
  const attributes = `Path=/; Max-Age=${KEPT_SECONDS}; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
  return { id: idOf(fresh), setCookie: `${name}=${fresh}; ${attributes}` };
}

const idOf = (word: string): string => createHash("sha256").update(word).digest("base64url");

type KeyFor = (purpose: string) => Buffer;

/** The secret of one form, bound to this step, question and browser. */
export const stepSecret = (keyFor: KeyFor, step: { uid: string; question: string }): string =>
  createHmac("sha256", keyFor("sign-in-steps"))
    .update(JSON.stringify([step.uid, step.question, currentBrowser()?.id ?? null]))
    .digest("base64url");

export function isStepSecret(keyFor: KeyFor, step: { uid: string; question: string }, given: string | null): boolean {
  const [told, expected] = [Buffer.from(given ?? ""), Buffer.from(stepSecret(keyFor, step))];
  return currentBrowser() !== undefined && told.length === expected.length && timingSafeEqual(told, expected);
}
