/**
 * The session of a browser, which says who is signed in. The authorization server stores it; pages read and begin it
 * here.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type Provider from "oidc-provider";
import type { Session } from "oidc-provider";
import { DAY_MS, SECOND_MS } from "../../lib/time/clock.ts";
import type { User } from "../../store/people/people.ts";
import type { Store } from "../../store/store.ts";

export interface Exchange {
  provider: Provider;
  request: IncomingMessage;
  response: ServerResponse;
}

export const SESSION_SECONDS = DAY_MS / SECOND_MS;

/** The browser's session and the person who is signed in; the session has a uid also when nobody is. */
export async function sessionOf(exchange: Exchange, store: Store): Promise<{ session: Session; user: User | null }> {
  const session = await find(exchange);
  const user = session.accountId === undefined ? null : await store.people.getUser(session.accountId);
  return { session, user };
}

const find = ({ provider, request, response }: Exchange): Promise<Session> =>
  provider.Session.get(provider.createContext(request, response));

/** Signs a person in in this browser under a new session id, and signs out whoever was signed in before. */
export async function beginSession(exchange: Exchange, sub: string): Promise<void> {
  const { provider, request, response } = exchange;
  const session = await find(exchange);
  await session.destroy();
  const fresh = new provider.Session();
  fresh.loginAccount({ accountId: sub });
  await fresh.save(SESSION_SECONDS);
  const { cookies, secure } = provider.createContext(request, response);
  cookies.set(provider.cookieName("session"), fresh.id, {
    ...SESSION_COOKIE,
    secure,
    signed: true,
    maxAge: SESSION_SECONDS * SECOND_MS,
  });
}

export const SESSION_COOKIE = { path: "/", httpOnly: true, sameSite: "lax" } as const;

/**
 * Empties the session when another person has just signed in. Otherwise the authorization server would sign the
 * previous person out first, with a page whose script submits a form.
 */
export async function vacateSession(exchange: Exchange, sub: string): Promise<void> {
  const session = await find(exchange);
  if (session.accountId === undefined || session.accountId === sub) return;
  for (const name of ["accountId", "loginTs", "authorizations", "state"] as const) delete session[name];
  await session.persist();
}
