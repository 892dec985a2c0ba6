/**
 * An invitation opened by its link. The inviter sent the link, so it admits the person who signs in with the invited
 * address, and creates a user when nobody has that address. Such a user belongs to this workspace alone and has an
 * unverified address, because the inviter has had the link, too.
 */
import type { Role } from "../../contract/operation.ts";
import type { Invitation, User } from "../../store/people/people.ts";
import type { Workspace } from "../../store/people/workspaces.ts";
import { rememberBrowser } from "../known-browser.ts";
import { beginSession } from "../oauth/browser-session.ts";
import { signInPath } from "../oauth/own-client.ts";
import { recordJoining, recordPasswordLink } from "../oauth/sign-in-audit.ts";
import { isStepSecret, stepSecret } from "../oauth/step-binding.ts";
import { messagePage } from "../pages/layout.ts";
import { invitationPage, joinedPage } from "../pages/link-pages.ts";
import { newPasswordProblem, type Wrong } from "../pages/new-password.ts";
import { hashPassword } from "../passwords.ts";
import { invitationStands } from "../rights/invitations.ts";
import { LINK_PATH, type Link, useLink } from "./link-tokens.ts";
import { type Answer, type LinkPageDeps, type LinkVisit, refusal, shownTime } from "./visit.ts";

type InvitationLink = Extract<Link, { purpose: "invitation" }>;

interface Invited {
  invitation: Invitation;
  workspace: Workspace;
  /** The user with the invited address. */
  person: User | null;
}

const WITHDRAWN = refusal(
  "This invitation was withdrawn, a newer one has replaced it, or whoever sent it may no longer invite. Ask an admin of the workspace for a new one.",
);

export const invitationLink = {
  async show(visit: LinkVisit, link: InvitationLink, deps: LinkPageDeps): Promise<Answer> {
    const invited = await find(link, deps);
    return invited ? show(visit, link, invited, null, deps) : WITHDRAWN;
  },

  async take(visit: LinkVisit, link: InvitationLink, form: URLSearchParams, deps: LinkPageDeps): Promise<Answer> {
    const invited = await find(link, deps);
    if (!invited) return WITHDRAWN;
    // The form belongs to another page or role, or somebody else has signed in since: show the page again.
    const isOwnForm = isStepSecret(deps.keyFor, stepOf(visit, invited), form.get("secret"));
    if (!isOwnForm) return show(visit, link, invited, null, deps);
    if (form.get("step") === "decline") return decline(visit, invited, deps);
    if (invited.person) {
      if (visit.signedIn?.sub !== invited.person.sub) return show(visit, link, invited, null, deps);
      const accepted = await deps.store.people.acceptInvitation(invited.invitation.id, invited.person.sub);
      return accepted ? joined(visit, invited, invited.person, deps) : WITHDRAWN;
    }
    const wrong = newPasswordProblem(form);
    if (wrong) return show(visit, link, invited, wrong, deps);
    const { id, email } = invited.invitation;
    const password = await hashPassword(form.get("password") ?? "");
    const person = await deps.store.people.acceptAsNewPerson(id, email, password);
    if (!person) return WITHDRAWN;
    await beginSession(visit.exchange, person.sub);
    const { request, response } = visit.exchange;
    const isSecure = deps.pagesUrl().startsWith("https:");
    response.appendHeader("set-cookie", rememberBrowser(deps.keyFor, request.headers.cookie, person.sub, isSecure));
    await recordPasswordLink(deps.store, person.sub, visit.origin);
    return joined(visit, invited, person, deps);
  },
};

async function find(link: InvitationLink, { store, clock }: LinkPageDeps): Promise<Invited | null> {
  const invitation = await store.people.getInvitation(link.invitation);
  const workspace = invitation && (await store.workspaces.get(invitation.workspace));
  if (!invitation || !workspace || invitation.expires_at <= clock.now()) return null;
  if (!(await invitationStands(invitation, { store, clock }))) return null;
  return { invitation, workspace, person: await store.people.getUser(invitation.email) };
}

/** Binds the form to this invitation, its role and the person who is signed in. */
const stepOf = ({ id, signedIn }: LinkVisit, { invitation, person }: Invited) => ({
  uid: id,
  question: JSON.stringify(["invitation", invitation.id, invitation.role, person?.sub, signedIn?.sub]),
});

async function show(
  visit: LinkVisit,
  link: InvitationLink,
  invited: Invited,
  wrong: Wrong | null,
  deps: LinkPageDeps,
): Promise<Answer> {
  const { invitation, workspace, person } = invited;
  const { signedIn } = visit;
  const isHere = person !== null && signedIn?.sub === person.sub;
  const html = invitationPage({
    email: invitation.email,
    inviter: await inviterOf(invitation, deps),
    workspace: workspace.displayName || workspace.name,
    account: (await deps.store.people.getAccount(workspace.accountId))?.name ?? "",
    role: invitation.role as Role,
    ends: shownTime(Math.min(link.expiresAt, invitation.expires_at)),
    secret: stepSecret(deps.keyFor, stepOf(visit, invited)),
    wrong,
    otherPerson: isHere ? null : (signedIn?.email ?? null),
    signIn: signInPath(deps.brand, deps.pagesUrl(), { page: `${LINK_PATH}/${visit.id}`, email: invitation.email }),
    person: person === null ? "new" : isHere ? "here" : "known",
    providers: deps.identityProviders.map(({ settings }) => settings.name),
  });
  return { status: wrong ? 400 : 200, html };
}

async function inviterOf({ invited_by: name }: Invitation, { store }: LinkPageDeps): Promise<string> {
  const user = await store.people.getUser(name);
  const fullName = user ? `${user.given_name} ${user.family_name}`.trim() : "";
  return fullName === "" ? name : `${fullName} (${user?.email})`;
}

async function joined(
  visit: LinkVisit,
  { invitation, workspace }: Invited,
  { sub, email }: User,
  deps: LinkPageDeps,
): Promise<Answer> {
  await useLink(deps, visit.token);
  const where = { workspace: workspace.name, accountId: workspace.accountId };
  await recordJoining(deps.store, sub, { ...where, invitation: invitation.id }, visit.origin);
  const html = joinedPage({
    workspace: workspace.displayName || workspace.name,
    email,
    server: deps.issuer(),
    account: "/oauth/account",
  });
  return { status: 200, html };
}

async function decline({ token }: LinkVisit, { invitation }: Invited, deps: LinkPageDeps): Promise<Answer> {
  if (!(await deps.store.people.removeInvitation(invitation.id))) return WITHDRAWN;
  await useLink(deps, token);
  return { status: 200, html: messagePage("You have declined", "The invitation is gone. You can close this page.") };
}
