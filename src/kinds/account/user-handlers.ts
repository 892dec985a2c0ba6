import type { z } from "zod";
import { makeLink, passwordMark } from "../../auth/links/link-tokens.ts";
import { belongsOnlyTo } from "../../auth/links/password-link.ts";
import { replacePassword } from "../../auth/password-change.ts";
import { notFound, PlatformError } from "../../contract/errors.ts";
import { toIso } from "../../lib/time/clock.ts";
import type { AccountMember } from "../../store/people/account-members.ts";
import { requireEndless } from "../handing-on.ts";
import { pagesUrl } from "../pages-url.ts";
import { type Call, type Implementation, implement, type Platform } from "../port.ts";
import {
  accountUserCreate,
  accountUserDelete,
  accountUserList,
  accountUserPassword,
  accountUserPasswordLink,
  type accountUserShape,
  accountUserUpdate,
} from "./user-operations.ts";

/** People in one account. The limit stops a client that adds people in a loop. */
const PEOPLE_MAX = 10_000;

export const accountUserHandlers: readonly Implementation[] = [
  implement(accountUserList, async (call, { store }) => (await store.accountMembers.list(accountOf(call))).map(toWire)),

  implement(accountUserCreate, async (call, { store }) => {
    const accountId = accountOf(call);
    const { email, role = "member", given_name: givenName = "", family_name: familyName = "" } = call.body;
    if ((await store.accountMembers.list(accountId)).length >= PEOPLE_MAX)
      throw new PlatformError("usage_limit_exceeded", `There are ${PEOPLE_MAX} people already. Remove some first.`);
    const known = await store.people.getUser(email);
    const user = await store.write(async (tx) => {
      // A person who already belongs to another account is invited to a workspace instead and can decline.
      if (known && !(await store.people.takeOverGuest(tx, accountId, known.sub)))
        throw new PlatformError("conflict", `${email} is known already.`);
      const person = known ?? (await store.people.createUser(tx, { email, givenName, familyName }));
      await store.people.setAccountRole(tx, accountId, person.sub, role);
      return person;
    });
    return toWire({ ...user, role });
  }),

  implement(accountUserUpdate, async (call, deps) => {
    const person = await find(call, deps);
    const { role } = call.body;
    if (!(await deps.store.accountMembers.setRole(accountOf(call), person.sub, role))) throw lastAdmin(person);
    return toWire({ ...person, role });
  }),

  implement(accountUserDelete, async (call, deps) => {
    const person = await find(call, deps);
    if (!(await deps.store.accountMembers.remove(accountOf(call), person))) throw lastAdmin(person);
    return { message: `${person.email} no longer belongs to the account.` };
  }),

  implement(accountUserPassword, async (call, deps) => {
    const { store } = deps;
    requireEndless(call.caller, "A password");
    const { sub, email } = await findOwn(call, deps);
    await replacePassword(store, sub, call.body.newPassword);
    // The admin now knows the password, so a later sign-in no longer proves that the address belongs to this person.
    await store.people.setEmailVerified(sub, false);
    return { message: `The password of ${email} is set.` };
  }),

  implement(accountUserPasswordLink, async (call, deps) => {
    const { store, clock, settings } = deps;
    requireEndless(call.caller, "A password");
    const { sub, email, password_hash } = await findOwn(call, deps);
    const what = { purpose: "password", sub, accountId: accountOf(call), mark: passwordMark(password_hash) } as const;
    const { url, expiresAt } = await makeLink({ store, clock }, pagesUrl(settings), what);
    return { email, url, expiresAt: toIso(expiresAt) };
  }),
];

const accountOf = ({ params }: Pick<Call, "params">): string => params.accountId ?? "";

async function find(call: Pick<Call, "params">, { store }: Platform): Promise<AccountMember> {
  const wanted = call.params.subOrEmail ?? "";
  const person = await store.accountMembers.find(accountOf(call), wanted);
  if (!person) throw notFound(`User '${wanted.slice(0, 254)}'`);
  return person;
}

/** An admin who sets a password can sign in as that person, so the person must belong to no other account. */
async function findOwn(call: Pick<Call, "params">, deps: Platform): Promise<AccountMember> {
  const person = await find(call, deps);
  if (await belongsOnlyTo(deps.store, accountOf(call), person.sub)) return person;
  const { email } = person;
  throw new PlatformError("forbidden", `${email} belongs to other accounts too, and sets the password themselves.`);
}

const lastAdmin = ({ email }: AccountMember): PlatformError =>
  new PlatformError(
    "conflict",
    `${email} is the only admin of this account. Make somebody else admin first, so that it keeps one.`,
  );

const toWire = (person: AccountMember): z.input<typeof accountUserShape> => ({
  sub: person.sub,
  email: person.email,
  given_name: person.given_name,
  family_name: person.family_name,
  email_verified: person.email_verified === 1,
  role: person.role,
  createdAt: toIso(person.created_at),
});
