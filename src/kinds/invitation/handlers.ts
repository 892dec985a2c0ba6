import type { z } from "zod";
import { invitationStands } from "../../auth/rights/invitations.ts";
import type { Caller } from "../../contract/caller.ts";
import { notFound, PlatformError } from "../../contract/errors.ts";
import type { Role } from "../../contract/operation.ts";
import { toIso } from "../../lib/time/clock.ts";
import type { Invitation, User } from "../../store/people/people.ts";
import type { Store } from "../../store/store.ts";
import { type Implementation, implement, type Platform } from "../port.ts";
import { workspaceToWire } from "../workspace/wire.ts";
import { invitationAccept, invitationDecline, invitationList, type invitationShape } from "./operations.ts";

export const invitationHandlers: readonly Implementation[] = [
  implement(invitationList, async ({ caller }, deps) => {
    const person = await personOf(caller, deps);
    const open = (await deps.store.people.listInvitations({ email: person.email })).filter(
      (invitation) => invitation.expires_at > deps.clock.now(),
    );
    return (await Promise.all(open.map((invitation) => toWire(invitation, person, deps)))).flat();
  }),

  implement(invitationAccept, async ({ caller, params }, deps) => {
    const person = await personOf(caller, deps);
    const invitation = await find(params.invitationId ?? "", person, deps);
    const accepted =
      invitation.expires_at > deps.clock.now() &&
      (await invitationStands(invitation, deps)) &&
      (await deps.store.people.acceptInvitation(invitation.id, person.sub));
    if (!accepted)
      throw new PlatformError(
        "gone",
        "This invitation has expired, or whoever made it may no longer invite. Ask an admin of the workspace for a new one.",
      );
    const workspace = await deps.store.workspaces.get(invitation.workspace);
    if (!workspace) throw notFound(`Workspace '${invitation.workspace}'`);
    return { email: person.email, workspace: workspaceToWire(workspace) };
  }),

  implement(invitationDecline, async ({ caller, params }, deps) => {
    const invitation = await find(params.invitationId ?? "", await personOf(caller, deps), deps);
    await deps.store.people.removeInvitation(invitation.id);
    return null;
  }),
];

async function personOf(caller: Caller, { store }: Platform): Promise<User> {
  const person = caller.subjectType === "user" ? await store.people.getUser(caller.subject) : null;
  if (!person) throw new PlatformError("forbidden", "Invitations are for people, and these credentials are not one's.");
  return person;
}

/** An invitation of another person is answered with 404, as if it did not exist. */
async function find(id: string, person: User, { store }: Platform): Promise<Invitation> {
  const invitation = await store.people.getInvitation(id);
  const workspace = invitation && (await store.workspaces.get(invitation.workspace));
  if (invitation?.email !== person.email || !workspace || !(await owns(person, workspace.accountId, store)))
    throw notFound(`Invitation '${id}'`);
  return invitation;
}

/** Whether the address proves the person: it was verified, or the person belongs to the account that invites. */
const owns = async ({ sub, email_verified }: User, accountId: string, store: Store): Promise<boolean> =>
  email_verified === 1 || (await store.people.accountsOf(sub)).some(({ id }) => id === accountId);

/** Empty when the workspace is being deleted, or when the maker of the invitation may no longer invite. */
async function toWire(
  invitation: Invitation,
  person: User,
  { store, clock }: Platform,
): Promise<z.input<typeof invitationShape>[]> {
  const workspace = await store.workspaces.get(invitation.workspace);
  if (!(await invitationStands(invitation, { store, clock }))) return [];
  if (!workspace || !(await owns(person, workspace.accountId, store))) return [];
  const [account, inviter, members] = await Promise.all([
    store.people.getAccount(workspace.accountId),
    store.people.getUser(invitation.invited_by),
    store.people.listMembers(workspace.name),
  ]);
  return [
    {
      invitationId: invitation.id,
      email: invitation.email,
      role: invitation.role as Role,
      type: "workspace",
      invitedAt: toIso(invitation.created_at),
      expiresAt: toIso(invitation.expires_at),
      invitedBy: inviter
        ? {
            sub: inviter.sub,
            email: inviter.email,
            given_name: inviter.given_name,
            family_name: inviter.family_name,
          }
        : { given_name: invitation.invited_by },
      account: { id: workspace.accountId, displayName: account?.name ?? "" },
      workspace: { name: workspace.name, displayName: workspace.displayName },
      workspaceDetails: { user_number: members.length },
    },
  ];
}
