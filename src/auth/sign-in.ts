/**
 * Checks a password sign-in: one answer for all reasons of refusal, and few tries. Tries are counted by address and by
 * person separately, and a try over a limit counts for neither: one address uses up its own tries, not the person's.
 * Many addresses together can use up a person's tries from unknown browsers; a browser in which the person has signed
 * in before has its own tries and keeps working.
 */

import { PASSWORD_LENGTH_MAX } from "../contract/password-length.ts";
import { clientNetworks } from "../lib/network/client-network.ts";
import type { TryLimit } from "../store/people/sign-in-tries.ts";
import type { Store } from "../store/store.ts";
import { verifyPassword } from "./passwords.ts";

/** Wrong tries per 15 minutes. A person mistypes a few times; an address may stand for a whole office. */
const TRIES_MAX = { person: 100, address: 200, both: 10, browser: 10 };
/** Longest valid email address. */
export const EMAIL_LENGTH_MAX = 254;

export type SignIn =
  | { outcome: "welcome"; sub: string }
  /** Wrong password, no password or no such person: the answer does not say which. */
  | { outcome: "refused" }
  /** `isNews` is true for the first try over the limit; only that one is logged. */
  | { outcome: "too_many_tries"; isNews: boolean };

export interface SignInTry {
  email: string;
  password: string;
  address: string;
  /** The browser's id if the browser is known for this person. */
  knownBrowser(sub: string): string | null;
}

export async function signIn(store: Store, given: SignInTry): Promise<SignIn> {
  const email = given.email.trim().toLowerCase().slice(0, EMAIL_LENGTH_MAX);
  const user = await store.people.getUser(email);
  const browser = user?.email === email ? given.knownBrowser(user.sub) : null;
  const limits = browser === null ? strangersLimits(email, given.address) : browserLimits(browser);
  const verdict = await store.signInTries.count(limits);
  if (verdict !== "allowed") return { outcome: "too_many_tries", isNews: verdict === "just_exceeded" };
  const fits = given.password.length <= PASSWORD_LENGTH_MAX;
  const right = await verifyPassword(fits ? given.password : "", user?.email === email ? user.password_hash : null);
  if (!right || !fits || !user) return { outcome: "refused" };
  const [own, ...shared] = limits.map(({ key }) => key);
  await store.signInTries.forgive({ clear: own === undefined ? [] : [own], refund: shared });
  return { outcome: "welcome", sub: user.sub };
}

/** The first limit is the client's own; the others are shared with other clients. */
function strangersLimits(email: string, address: string): TryLimit[] {
  const networks = clientNetworks(address);
  return [
    { key: `both:${email} ${networks[0].name}`, max: TRIES_MAX.both },
    { key: `person:${email}`, max: TRIES_MAX.person },
    ...networks.map(({ name, share }) => ({ key: `address:${name}`, max: TRIES_MAX.address * share })),
  ];
}

const browserLimits = (browser: string): TryLimit[] => [{ key: `browser:${browser}`, max: TRIES_MAX.browser }];
