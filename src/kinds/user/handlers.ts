import type { z } from "zod";
import { makeLink } from "../../auth/links/link-tokens.ts";
import type { Caller } from "../../contract/caller.ts";
import { notFound, PlatformError } from "../../contract/errors.ts";
import type { Role } from "../../contract/operation.ts";
import { DAY_MS, toIso } from "../../lib/time/clock.ts";
import type { Invitation, Inviter, Member } from "../../store/people/people.ts";
import { requireRoleToGive } from "../handing-on.ts";
import { pagesUrl } from "../pages-url.ts";
import { type Implementation, implement, type Platform, workspaceOf } from "../port.ts";
import { type pendingInvitation, userInvite, userList, userRemove, type userShape, userUpdate } from "./operations.ts";

/** Lifetime of an invitation. */
const INVITATION_MS = 7 * DAY_MS;
/** Open invitations of one workspace. The limit stops a client that invites in a loop. */
const OPEN_INVITATIONS_MAX = 500;

type User = z.input<typeof userShape>;

export const userHandlers: readonly Implementation[] = [
  implement(userList, async (call, { store, clock }) => {
    const { name: workspace } = workspaceOf(call);
    const [members, invitations] = await Promise.all([
      store.people.listMembers(workspace),
      store.people.listInvitations({ workspace }),
    ]);
    return [...members.map(memberToWire), ...invitations.map((one) => invitedToWire(one, clock.now()))];
  }),

  implement(userInvite, async (call, { store, clock, settings }) => {
    const { name: workspace } = workspaceOf(call);
    const { email, role = "member" } = call.body;
    requireRoleToGive("role", role, call.caller);
    const user = await store.people.getUser(email);
    if (user && (await store.people.roleIn(workspace, user.sub)))
      throw new PlatformError("conflict", `${email} is a member of '${workspace}' already.`);
    const open = await store.people.listInvitations({ workspace });
    if (open.length >= OPEN_INVITATIONS_MAX && !open.some((one) => one.email === email))
      throw new PlatformError(
        "usage_limit_exceeded",
        `There are ${OPEN_INVITATIONS_MAX} open invitations. Withdraw some first.`,
      );
    const invitation = await store.people.invite(
      workspace,
      email,
      role,
      inviterOf(call.caller),
      endOf(clock.now() + INVITATION_MS, call.caller),
    );
    const what = { purpose: "invitation", invitation: invitation.id } as const;
    return invitationToWire(invitation, await makeLink({ store, clock }, pagesUrl(settings), what));
  }),

  implement(userUpdate, async (call, deps) => {
    const { name: workspace } = workspaceOf(call);
    const { role } = call.body;
    requireRoleToGive("role", role, call.caller);
    const found = await find(workspace, call.params.subOrEmail ?? "", deps);
    if ("invitation" in found) return changeInvited(found.invitation, role, call.caller, deps);
    await change(workspace, found.member, role, deps);
    return { ...memberToWire(found.member), role };
  }),

  implement(userRemove, async (call, deps) => {
    const { name: workspace } = workspaceOf(call);
    const found = await find(workspace, call.params.subOrEmail ?? "", deps);
    if ("invitation" in found) {
      await deps.store.people.removeInvitation(found.invitation.id);
      return { message: `The invitation of ${found.invitation.email} is withdrawn.` };
    }
    await change(workspace, found.member, null, deps);
    return { message: `${found.member.email} is no longer a member of '${workspace}'.` };
  }),
];

/** An invitation ends with the key or the service account that made it. A person's sign-in may end before. */
const inviterOf = ({ displayName, right }: Caller): Inviter => ({
  invitedBy: displayName,
  madeWith: right?.startsWith("grant:") ? null : right,
});

/** An invitation ends with the credentials that made it. */
const endOf = (ms: number, { endsAt }: Caller): number => Math.min(ms, endsAt ?? ms);

async function find(
  workspace: string,
  subOrEmail: string,
  { store }: Platform,
): Promise<{ member: Member } | { invitation: Invitation }> {
  const wanted = subOrEmail.toLowerCase();
  const member = (await store.people.listMembers(workspace)).find(
    ({ sub, email }) => sub === subOrEmail || email === wanted,
  );
  if (member) return { member };
  const [invitation] = (await store.people.listInvitations({ workspace })).filter(({ email }) => email === wanted);
  if (invitation) return { invitation };
  throw notFound(`User '${subOrEmail.slice(0, 254)}'`);
}

async function changeInvited(invitation: Invitation, role: Role, caller: Caller, deps: Platform): Promise<User> {
  const { store, clock, settings } = deps;
  const isRaise = role === "admin" && invitation.role !== "admin";
  const changed = isRaise
    ? await store.people.raiseInvitation(invitation.id, inviterOf(caller), endOf(invitation.expires_at, caller))
    : (await store.people.changeInvitedRole(invitation.id, role)) && { ...invitation, role };
  if (!changed) throw notFound(`User '${invitation.email}'`);
  const user = invitedToWire(changed, clock.now());
  if (!isRaise) return user;
  const what = { purpose: "invitation", invitation: changed.id } as const;
  const { url, expiresAt } = await makeLink({ store, clock }, pagesUrl(settings), what);
  return { ...user, url, urlExpiresAt: toIso(expiresAt) };
}

async function change(
  workspace: string,
  { sub, email }: Member,
  role: Role | null,
  { store }: Platform,
): Promise<void> {
  if (await store.people.changeMember(workspace, sub, role)) return;
  throw new PlatformError(
    "conflict",
    `${email} is the only admin of '${workspace}'. Make somebody else admin first, so that the workspace keeps one.`,
  );
}

const memberToWire = (member: Member): User => ({
  sub: member.sub,
  email: member.email,
  given_name: member.givenName,
  family_name: member.familyName,
  role: member.role,
  accepted: true,
  email_verified: member.emailVerified,
  expired: false,
  source: member.source as User["source"],
});

const invitedToWire = (invitation: Invitation, nowMs: number): User => ({
  email: invitation.email,
  role: invitation.role as Role,
  accepted: false,
  email_verified: false,
  expired: invitation.expires_at <= nowMs,
  source: "invitation",
});

const invitationToWire = (
  invitation: Invitation,
  link: { url: string; expiresAt: number },
): z.input<typeof pendingInvitation> => ({
  invitationId: invitation.id,
  email: invitation.email,
  role: invitation.role as Role,
  workspace: invitation.workspace,
  invitedBy: invitation.invited_by,
  expiresAt: toIso(invitation.expires_at),
  createdAt: toIso(invitation.created_at),
  updatedAt: toIso(invitation.created_at),
  createdBy: invitation.invited_by,
  updatedBy: invitation.invited_by,
  url: link.url,
  urlExpiresAt: toIso(link.expiresAt),
});
