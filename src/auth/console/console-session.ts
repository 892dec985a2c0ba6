/**
 * The session of a browser at the console. Its cookie is accepted by `POST /console/token` alone, which answers with a
 * token of a few minutes; the API takes that token like any other and never the cookie. The session is a consent of the
 * person to the console, so that it is listed and ended like those of other programs.
 */
import type { Right } from "../../contract/caller.ts";
import { cookieMark, HOST_PREFIX } from "../../contract/platform-cookies.ts";
import { randomSecret } from "../../lib/ids.ts";
import { DAY_MS, SECOND_MS } from "../../lib/time/clock.ts";
import { ownClientId } from "../oauth/own-client.ts";
import { ENDED, endOf } from "../rights/ends.ts";
import type { ConsoleDeps, Welcomed } from "./console-link.ts";

/** Longer than a working week would be a key in all but name. */
const SESSION_SECONDS = (7 * DAY_MS) / SECOND_MS;
const MODEL = "ConsoleSession";
const SECRET = /^[\w-]{43}$/;

export interface ConsoleSession {
  sub: string;
  grantId: string;
}

/** Returns the secret for the cookie. */
export async function beginConsoleSession(
  { store }: ConsoleDeps,
  brand: string,
  { sub, hangsOn }: Welcomed,
): Promise<string> {
  const [secret, grantId] = [randomSecret(), randomSecret()];
  await store.oauth.put("Grant", grantId, { accountId: sub, clientId: ownClientId(brand), hangsOn }, SESSION_SECONDS);
  await store.oauth.put(MODEL, secret, { accountId: sub, grantId, hangsOn }, SESSION_SECONDS);
  return secret;
}

export async function findConsoleSession(deps: ConsoleDeps, secret: string): Promise<ConsoleSession | null> {
  const found = SECRET.test(secret) ? await deps.store.oauth.find(MODEL, secret) : undefined;
  if (!found || (await endOf((found.hangsOn as Right | null) ?? null, deps)) === ENDED) return null;
  return { sub: String(found.accountId), grantId: String(found.grantId) };
}

export const endConsoleSession = ({ store }: ConsoleDeps, { grantId }: ConsoleSession): Promise<void> =>
  store.oauth.removeGrant(grantId);

const cookieName = (brand: string, isSecure: boolean): string =>
  `${isSecure ? HOST_PREFIX : ""}${cookieMark(brand)}console`;

/** Without TLS there is no `__Host-` cookie, and the narrower path keeps the secret off every other request. */
export function sessionCookie(brand: string, isSecure: boolean, secret: string | null): string {
  const life = secret === null ? 0 : SESSION_SECONDS;
  const path = isSecure ? "/; Secure" : "/console";
  return `${cookieName(brand, isSecure)}=${secret ?? ""}; Path=${path}; Max-Age=${life}; HttpOnly; SameSite=Strict`;
}

/** The secret of the request's cookie; "" when there is none, or two, of which one is somebody else's. */
export function sessionSecret(cookies: string | undefined, brand: string, isSecure: boolean): string {
  const start = `${cookieName(brand, isSecure)}=`;
  const found = (cookies ?? "")
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(start));
  return found.length === 1 ? (found[0] ?? "").slice(start.length) : "";
}
