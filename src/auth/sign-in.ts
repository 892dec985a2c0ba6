/** Whether somebody may sign in with a password: one answer for all reasons, and few tries. */
import type { Store } from "../store/store.ts";
import { verifyPassword } from "./passwords.ts";

/** Within a quarter of an hour. A person mistypes a few times; an address may stand for a whole office. */
const TRIES_MAX = { person: 100, address: 200, both: 10 };
/** Longer texts are no address and no password that we would have accepted. */
export const PASSWORD_LENGTH_MAX = 256;
const EMAIL_LENGTH_MAX = 254;

export type SignIn =
  | { outcome: "welcome"; sub: string }
  /** Wrong password, no password, no such person: nobody is told which. */
  | { outcome: "refused" }
  /** `isNews` at the first that is too many; the others are not worth a line each. */
  | { outcome: "too_many_tries"; isNews: boolean };

export async function signIn(
  store: Store,
  given: { email: string; password: string; address: string },
): Promise<SignIn> {
  const email = given.email.trim().toLowerCase().slice(0, EMAIL_LENGTH_MAX);
  const both = `both:${email} ${given.address}`;
  const person = `person:${email}`;
  const verdict = await store.signInTries.count([
    { key: both, max: TRIES_MAX.both },
    { key: person, max: TRIES_MAX.person },
    { key: `address:${given.address}`, max: TRIES_MAX.address },
  ]);
  if (verdict !== "allowed") return { outcome: "too_many_tries", isNews: verdict === "just_exceeded" };
  const user = await store.people.getUser(email);
  const fits = given.password.length <= PASSWORD_LENGTH_MAX;
  const right = await verifyPassword(fits ? given.password : "", user?.email === email ? user.password_hash : null);
  if (!right || !fits || !user) return { outcome: "refused" };
  await store.signInTries.clear([both, person]);
  return { outcome: "welcome", sub: user.sub };
}
