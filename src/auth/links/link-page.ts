/** The page of an opened link: finds the link and passes the visit on to the handler of its purpose. */
import { type Exchange, sessionOf } from "../oauth/browser-session.ts";
import type { Origin } from "../oauth/sign-in-audit.ts";
import { isStepSecret, stepSecret } from "../oauth/step-binding.ts";
import { messagePage, pageHeaders } from "../pages/layout.ts";
import { LINK_SCRIPT, linkEntryPage } from "../pages/link-pages.ts";
import { invitationLink } from "./invitation-link.ts";
import { LINK_PATH, type Link, type LinkState } from "./link-tokens.ts";
import { findOpened, openLink } from "./opened-link.ts";
import { passwordLink } from "./password-link.ts";
import { type Answer, type LinkPageDeps, type LinkVisit, refusal } from "./visit.ts";

/** The handler of each purpose: shows the page and processes its form. */
const PURPOSES = { invitation: invitationLink, password: passwordLink };

const ENTRY = { uid: "entry", question: "link" };

/** The page that every link leads to: the browser brings the token behind the `#`. */
export function showLinkEntry({ response }: Exchange, { keyFor }: LinkPageDeps): void {
  response.writeHead(200, pageHeaders(LINK_SCRIPT)).end(linkEntryPage(stepSecret(keyFor, ENTRY)));
}

export async function enterLink({ response }: Exchange, form: URLSearchParams, deps: LinkPageDeps): Promise<void> {
  if (!isStepSecret(deps.keyFor, ENTRY, form.get("secret"))) return write(response, OPEN_AGAIN);
  const id = await openLink(deps, (form.get("token") ?? "").trim().replace(/^.*#/, ""));
  response.writeHead(303, { location: `${deps.pagesUrl()}${LINK_PATH}/${id}`, "cache-control": "no-store" }).end();
}

/** `form` is null for a GET request. */
export async function linkPage(
  exchange: Exchange,
  id: string,
  form: URLSearchParams | null,
  origin: Origin,
  deps: LinkPageDeps,
): Promise<void> {
  const { response } = exchange;
  const opened = await findOpened(deps, id);
  if (opened === null) return write(response, OPEN_AGAIN);
  const { token, state } = opened;
  if (state.outcome !== "open") return write(response, REFUSED[state.outcome]);
  const { session, user } = await sessionOf(exchange, deps.store);
  const visit: LinkVisit = { exchange, id, token, signedIn: user, sessionUid: session.uid, origin };
  write(response, await answer(visit, state.link, form, deps));
}

/** The cast is needed because the compiler cannot see that a link fits the purpose it names. */
async function answer(visit: LinkVisit, link: Link, form: URLSearchParams | null, deps: LinkPageDeps): Promise<Answer> {
  const purpose = PURPOSES[link.purpose] as typeof invitationLink;
  return form === null
    ? purpose.show(visit, link as Parameters<typeof purpose.show>[1], deps)
    : purpose.take(visit, link as Parameters<typeof purpose.take>[1], form, deps);
}

function write(response: Exchange["response"], { status, html }: Answer): void {
  response.writeHead(status, pageHeaders()).end(html);
}

const OPEN_AGAIN: Answer = {
  status: 404,
  html: messagePage(
    "Open the link again",
    "This page belongs to the browser that opened the link, and only for an hour. Open the link again in this browser.",
  ),
};

const REFUSED: Record<Exclude<LinkState["outcome"], "open">, Answer> = {
  unknown: refusal("The platform does not know this link. Check that you have all of it, or ask for a new one.", 404),
  used: refusal("This link has been used, and a link works once."),
  expired: refusal("The time of this link is over. Ask whoever sent it for a new one."),
};
