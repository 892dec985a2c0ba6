/** How people set their own password: whoever changes one knows it, and tries are few. */
import type { User } from "../store/people/people.ts";
import type { Store } from "../store/store.ts";
import { hashPassword, verifyPassword } from "./passwords.ts";

/** Within a quarter of an hour. Whoever found a token or a session must not find out the password with it. */
const TRIES_MAX = 10;

export type PasswordChange = "changed" | "wrong" | "too_many_tries";

/** Sets a new password for who knows the current one; every session and every program's access ends. */
export async function changePassword(
  store: Store,
  user: User,
  { current, next }: { current: string; next: string },
): Promise<PasswordChange> {
  const limit = { key: triesKey(user.sub), max: TRIES_MAX };
  if ((await store.signInTries.count([limit])) !== "allowed") return "too_many_tries";
  if (!(await verifyPassword(current, user.password_hash))) return "wrong";
  return (await replacePassword(store, user.sub, next, user.password_hash)) ? "changed" : "wrong";
}

/** Without asking for the current one; returns false when `replaced`, if given, is no longer the current one's hash. */
export async function replacePassword(
  store: Store,
  sub: string,
  next: string,
  replaced?: string | null,
): Promise<boolean> {
  if (!(await store.people.setPassword(sub, await hashPassword(next), replaced))) return false;
  await store.signInTries.forgive({ clear: [triesKey(sub)], refund: [] });
  await store.oauth.endSessions(sub, null);
  return true;
}

const triesKey = (sub: string): string => `change:${sub}`;
