/** The account pages of a person who is signed in in a browser: end sessions, change the password. */
import { createHash } from "node:crypto";
import type { User } from "../../store/people/people.ts";
import { shownTime } from "../links/visit.ts";
import { beginSession, type Exchange, sessionOf } from "../oauth/browser-session.ts";
import type { InteractionDeps } from "../oauth/interaction.ts";
import { signInPath } from "../oauth/own-client.ts";
import { ROUTES } from "../oauth/routes.ts";
import { type Origin, recordPasswordChange } from "../oauth/sign-in-audit.ts";
import { isStepSecret, stepSecret } from "../oauth/step-binding.ts";
import { accountPage, passwordPage, type SignedIn } from "../pages/account-pages.ts";
import { messagePage, pageHeaders } from "../pages/layout.ts";
import { newPasswordProblem, type Wrong } from "../pages/new-password.ts";
import { changePassword } from "../password-change.ts";

export const ACCOUNT = "/oauth/account";
export const ACCOUNT_PASSWORD = `${ACCOUNT}/password`;

export interface AccountDeps extends InteractionDeps {
  brand: string;
}

interface Visitor {
  user: User;
  /** The id of the session in the person's list. */
  sessionId: string;
  step(question: string): { uid: string; question: string };
}

/** `form` is null for a GET request. */
export async function account(exchange: Exchange, form: URLSearchParams | null, deps: AccountDeps): Promise<void> {
  const visitor = await visitorOf(exchange, ACCOUNT, deps);
  if (!visitor) return;
  const isOwnForm = form !== null && isStepSecret(deps.keyFor, visitor.step("sessions"), form.get("secret"));
  const ended = isOwnForm && (await deps.store.oauth.endSessions(visitor.user.sub, form.get("session") ?? ""));
  await showAccount(exchange, visitor, ended ? "Signed out. Its access has ended." : null, deps);
}

export async function accountPassword(
  exchange: Exchange,
  form: URLSearchParams | null,
  origin: Origin,
  deps: AccountDeps,
): Promise<void> {
  const visitor = await visitorOf(exchange, ACCOUNT_PASSWORD, deps);
  if (!visitor) return;
  const { user } = visitor;
  if (user.password_hash === null) {
    const text = "You sign in with another provider. An admin of the account can give you a link to choose a password.";
    write(exchange, 200, messagePage("You have no password here", text, { href: ACCOUNT, label: "Your account" }));
    return;
  }
  const step = visitor.step("password");
  const show = (wrong: Wrong | null, status = 200): void =>
    write(
      exchange,
      status,
      passwordPage({ email: user.email, secret: stepSecret(deps.keyFor, step), wrong, back: ACCOUNT }),
    );
  if (form === null || !isStepSecret(deps.keyFor, step, form.get("secret"))) return show(null);
  const wrong = newPasswordProblem(form);
  if (wrong) return show(wrong, 400);
  const given = { current: form.get("current") ?? "", next: form.get("password") ?? "" };
  const outcome = await changePassword(deps.store, user, given);
  await recordPasswordChange(deps.store, user.sub, STATUS[outcome], origin);
  if (outcome !== "changed") return show({ field: "current", text: WRONG[outcome] }, STATUS[outcome]);
  // This browser's session has ended with the others; the person has just entered the password, so a new one begins.
  await beginSession(exchange, user.sub);
  const text = "Every other browser and every program that was signed in as you is signed out.";
  write(exchange, 200, messagePage("Your password is changed", text, { href: ACCOUNT, label: "Your account" }));
}

const STATUS = { changed: 200, wrong: 403, too_many_tries: 429 } as const;
const WRONG = {
  wrong: "That is not your current password.",
  too_many_tries: "Too many tries. Wait a quarter of an hour, then try again.",
};

/** Returns null when nobody is signed in; the browser has then been redirected to the sign-in. */
async function visitorOf(exchange: Exchange, page: string, deps: AccountDeps): Promise<Visitor | null> {
  const { session, user } = await sessionOf(exchange, deps.store);
  if (user) {
    const sessionId = createHash("sha256").update(session.id).digest("base64url");
    return { user, sessionId, step: (question) => ({ uid: session.uid, question }) };
  }
  const location = `${deps.pagesUrl()}${signInPath(deps.brand, deps.pagesUrl(), { page })}`;
  exchange.response.writeHead(303, { location, "cache-control": "no-store" }).end();
  return null;
}

async function showAccount(
  exchange: Exchange,
  { user, sessionId, step }: Visitor,
  said: string | null,
  deps: AccountDeps,
): Promise<void> {
  const [workspaces, sessions] = await Promise.all([
    deps.store.workspaces.listFor(user.sub),
    deps.store.oauth.listSessions(user.sub),
  ]);
  const html = accountPage({
    email: user.email,
    workspaces: workspaces.map(({ name, displayName }) => displayName || name),
    sessions: await Promise.all(
      sessions.map(
        async ({ id, client, createdAt, expiresAt }): Promise<SignedIn> => ({
          id,
          name: client === null ? "A browser" : await programName(exchange, client),
          since: shownTime(createdAt),
          until: shownTime(expiresAt),
          isThisBrowser: id === sessionId,
        }),
      ),
    ),
    secret: stepSecret(deps.keyFor, step("sessions")),
    password: user.password_hash === null ? null : ACCOUNT_PASSWORD,
    signOut: ROUTES.end_session,
    said,
  });
  write(exchange, 200, html);
}

async function programName({ provider }: Exchange, clientId: string): Promise<string> {
  const name = (await provider.Client.find(clientId))?.clientName ?? clientId;
  return name.charAt(0).toUpperCase() + name.slice(1);
}

function write({ response }: Exchange, status: number, html: string): void {
  response.writeHead(status, pageHeaders()).end(html);
}
