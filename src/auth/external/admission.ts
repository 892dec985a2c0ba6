/**
 * Finds the user for a person who has signed in at an external provider. Issuer and subject identify the user
 * permanently. An email address links them to an existing user only once, and only when the provider has verified it.
 */
import type { Store } from "../../store/store.ts";
import type { ExternalPerson, IdentityProviderSettings } from "./identity-provider.ts";

export type Admission =
  | { outcome: "welcome"; sub: string }
  /** `reason` is shown to the person. */
  | { outcome: "refused"; reason: string };

export async function admit(
  store: Store,
  person: ExternalPerson,
  settings: IdentityProviderSettings,
): Promise<Admission> {
  const [account] = await store.people.listAccountsAcrossUsers();
  if (!account) throw new Error("the platform has no account");
  const admission = await settle(store, person, account.id, settings);
  if (admission.outcome === "welcome")
    await store.externalIdentities.syncGroups(account.id, admission.sub, person.groups);
  return admission;
}

async function settle(
  store: Store,
  person: ExternalPerson,
  accountId: string,
  { name, domains, create_users: mayCreate }: IdentityProviderSettings,
): Promise<Admission> {
  const { issuer, subject, email } = person;
  const identity = { issuer, subject };
  const known = await store.externalIdentities.find(identity);
  if (known !== null) return { outcome: "welcome", sub: known };
  if (email === null) return refused(`${name} has not verified your email address.`);
  if (domains.length > 0 && !domains.includes(email.split("@")[1] ?? ""))
    return refused(`Addresses such as ${email} are not let in here.`);
  const owner = await store.people.getUser(email);
  if (owner) {
    // An admin of another account may have created this user with this address and know its password.
    const isOurs = (await store.people.accountsOf(owner.sub)).some(({ id }) => id === accountId);
    const isOpen = isOurs || owner.email_verified === 1;
    if (!isOpen && !(await store.write((tx) => store.people.takeOverGuest(tx, accountId, owner.sub))))
      return refused(
        `${email} is known here already, and nobody has shown that it is yours. Sign in as you did before.`,
      );
    if (!(await store.externalIdentities.link(identity, owner.sub)))
      return refused(`${email} signs in at ${name} as somebody else.`);
    await store.people.setEmailVerified(owner.sub, true);
    return { outcome: "welcome", sub: owner.sub };
  }
  if (!mayCreate) return refused(`${email} is not known here. Ask an admin of the account to add you.`);
  const { givenName, familyName } = person;
  const sub = await store.externalIdentities.create(identity, accountId, { email, givenName, familyName });
  return { outcome: "welcome", sub };
}

const refused = (reason: string): Admission => ({ outcome: "refused", reason });
