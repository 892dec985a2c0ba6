/** Every request has an id, which also goes out as X-Request-Id. */
import { randomWord } from "../lib/ids.ts";

const processWord = randomWord(12);
let requests = 0;

/**
 * A caller may bring an id to follow a request through several systems; anything odd is replaced by one that names the
 * process and counts: unique like a random word, and cheaper.
 */
export function requestIdOf(given: string | string[] | undefined): string {
  if (typeof given === "string" && /^[\w.:-]{1,128}$/.test(given)) return given;
  requests += 1;
  return `req-${processWord}-${requests.toString(36)}`;
}
