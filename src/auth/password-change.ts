/** Changing one's own password: it takes the current password, and tries are limited. */
import type { User } from "../store/people/people.ts";
import type { Store } from "../store/store.ts";
import { hashPassword, verifyPassword } from "./passwords.ts";

/** Tries per 15 minutes, so that a stolen token or session does not help to guess the password. */
const TRIES_MAX = 10;

export type PasswordChange = "changed" | "wrong" | "too_many_tries";

/** Sets a new password if the current one is right, and ends every session and every program's access. */
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

/** Sets a new password without asking for the current one. False when `replaced` is given and is not the current hash. */
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
