/**
 * A link with which a person sets a password, made by an admin of the account. The admin could have used the link, so
 * it gives no more than the admin already has: it works only for people of that account alone, and leaves the email
 * address unverified.
 */
import type { User } from "../../store/people/people.ts";
import type { Store } from "../../store/store.ts";
import { rememberBrowser } from "../known-browser.ts";
import { beginSession } from "../oauth/browser-session.ts";
import { recordPasswordLink } from "../oauth/sign-in-audit.ts";
import { isStepSecret, stepSecret } from "../oauth/step-binding.ts";
import { messagePage } from "../pages/layout.ts";
import { passwordLinkPage } from "../pages/link-pages.ts";
import { newPasswordProblem, type Wrong } from "../pages/new-password.ts";
import { replacePassword } from "../password-change.ts";
import { type Link, passwordMark, useLink } from "./link-tokens.ts";
import { type Answer, type LinkPageDeps, type LinkVisit, refusal, shownTime } from "./visit.ts";

type PasswordLink = Extract<Link, { purpose: "password" }>;

export const passwordLink = {
  async show(visit: LinkVisit, link: PasswordLink, deps: LinkPageDeps): Promise<Answer> {
    const found = await find(link, deps.store);
    return "refused" in found ? found.refused : show(visit, link, found.user, null, deps);
  },

  async take(visit: LinkVisit, link: PasswordLink, form: URLSearchParams, deps: LinkPageDeps): Promise<Answer> {
    const found = await find(link, deps.store);
    if ("refused" in found) return found.refused;
    const { user } = found;
    if (!isStepSecret(deps.keyFor, stepOf(visit, user), form.get("secret"))) return show(visit, link, user, null, deps);
    const wrong = newPasswordProblem(form);
    if (wrong) return show(visit, link, user, wrong, deps);
    if (!(await useLink(deps, visit.token))) return CHANGED;
    // Of two links that are used at once, the second finds another password than its own.
    if (!(await replacePassword(deps.store, user.sub, form.get("password") ?? "", user.password_hash))) return CHANGED;
    await deps.store.people.setEmailVerified(user.sub, false);
    await beginSession(visit.exchange, user.sub);
    const { request, response } = visit.exchange;
    const isSecure = deps.pagesUrl().startsWith("https:");
    response.appendHeader("set-cookie", rememberBrowser(deps.keyFor, request.headers.cookie, user.sub, isSecure));
    await recordPasswordLink(deps.store, user.sub, visit.origin);
    const onward = { href: "/oauth/account", label: "Your account" };
    const text = `You are signed in as ${user.email}. Every other browser and program is signed out.`;
    return { status: 200, html: messagePage("Your password is set", text, onward) };
  },
};

const CHANGED = refusal("The password was changed after this link was made. Ask for a new link if you need one.");
const GONE = refusal("The person whom this link is for no longer belongs to the account.");
const SHARED = refusal("This person belongs to other accounts too by now, and changes the password themselves.", 403);

async function find(
  { sub, accountId, mark }: PasswordLink,
  store: Store,
): Promise<{ user: User } | { refused: Answer }> {
  const user = await store.accountMembers.find(accountId, sub);
  if (!user) return { refused: GONE };
  if (!(await belongsOnlyTo(store, accountId, sub))) return { refused: SHARED };
  return mark === passwordMark(user.password_hash) ? { user } : { refused: CHANGED };
}

/** Setting a password allows signing in as its owner, so admins may do it only for people of their account alone. */
export async function belongsOnlyTo(store: Store, accountId: string, sub: string): Promise<boolean> {
  const [accounts, workspaces] = await Promise.all([store.people.accountsOf(sub), store.workspaces.listFor(sub)]);
  return accounts.length <= 1 && workspaces.every((workspace) => workspace.accountId === accountId);
}

const stepOf = ({ id }: LinkVisit, { sub }: User) => ({ uid: id, question: `password:${sub}` });

function show(visit: LinkVisit, link: PasswordLink, user: User, wrong: Wrong | null, deps: LinkPageDeps): Answer {
  const html = passwordLinkPage({
    email: user.email,
    isFirst: user.password_hash === null,
    ends: shownTime(link.expiresAt),
    secret: stepSecret(deps.keyFor, stepOf(visit, user)),
    wrong,
  });
  return { status: wrong ? 400 : 200, html };
}
