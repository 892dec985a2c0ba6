/**
 * Links that open the console signed in. The server prints one when it starts, and `berth open` asks for another. The
 * secret stands behind the `#`, which browsers send to no server; the console sends it back in a POST of its own.
 */
import type { Right } from "../../contract/caller.ts";
import { randomSecret } from "../../lib/ids.ts";
import { type Clock, MINUTE_MS, SECOND_MS } from "../../lib/time/clock.ts";
import type { Store } from "../../store/store.ts";

/** Long enough to walk to another machine, short enough that a recorded terminal is worth nothing the next day. */
const LIFE_MS = 30 * MINUTE_MS;
const MODEL = "ConsoleLink";
const SECRET = /^[\w-]{43}$/;

export interface ConsoleDeps {
  store: Store;
  clock: Clock;
}

export interface Welcomed {
  sub: string;
  /** The right that the session depends on; null when it depends on none. */
  hangsOn: Right | null;
}

export async function makeConsoleLink(
  { store, clock }: ConsoleDeps,
  pagesUrl: string,
  { sub, hangsOn }: Welcomed,
): Promise<{ url: string; expiresAt: number }> {
  const secret = randomSecret();
  const expiresAt = clock.now() + LIFE_MS;
  await store.oauth.put(MODEL, secret, { person: sub, hangsOn, expiresAt }, LIFE_MS / SECOND_MS);
  return { url: `${pagesUrl}/#${secret}`, expiresAt };
}

/** The person of a link that still works; the link stays as it is. */
export async function personOfLink({ store, clock }: ConsoleDeps, secret: string): Promise<string | null> {
  const found = SECRET.test(secret) ? await store.oauth.find(MODEL, secret) : undefined;
  return !found || Number(found.expiresAt) <= clock.now() ? null : String(found.person);
}

/** Returns the person to exactly one caller, once; null when the link is unknown, used or too old. */
export async function useConsoleLink({ store, clock }: ConsoleDeps, secret: string): Promise<Welcomed | null> {
  const found = SECRET.test(secret) ? await store.oauth.find(MODEL, secret) : undefined;
  if (!found || Number(found.expiresAt) <= clock.now()) return null;
  if (!(await store.oauth.consume(MODEL, secret))) return null;
  return { sub: String(found.person), hangsOn: (found.hangsOn as Right | null) ?? null };
}
