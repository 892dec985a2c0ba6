/**
 * Links that are handed to one person and work once: to an invitation, or to a new password. No mail server is needed:
 * the API answers with the link, and whoever asked for it hands it on.
 *
 * The token stands behind the `#`, which browsers send to no server: it is in no request line, no log of a proxy and no
 * `Referer`. The page behind the link (`/oauth/link`) sends it in a form. The store has a hash of the token.
 */
import { createHash } from "node:crypto";
import { randomSecret } from "../../lib/ids.ts";
import { type Clock, DAY_MS, SECOND_MS } from "../../lib/time/clock.ts";
import type { Store } from "../../store/store.ts";

/** Where links lead, on the host of the pages. */
export const LINK_PATH = "/oauth/link";
/**
 * How long a link works: an invitation may wait over a weekend; a password link is used soon after it was requested.
 */
const LIFE_MS = { invitation: 3 * DAY_MS, password: DAY_MS } as const;
/** How long a used or expired link is remembered, so that the page can say why it does not work. */
const KNOWN_MS = 30 * DAY_MS;
const MODEL = "Link";
const TOKEN = /^[\w-]{43}$/;

export interface LinkDeps {
  store: Store;
  clock: Clock;
}

export type LinkPurpose =
  | { purpose: "invitation"; invitation: string }
  /** `mark` identifies the password that the link may replace. */
  | { purpose: "password"; sub: string; accountId: string; mark: string };

export type Link = LinkPurpose & { expiresAt: number };

export type LinkState = { outcome: "open"; link: Link } | { outcome: "unknown" | "used" | "expired" };

export async function makeLink(
  { store, clock }: LinkDeps,
  pagesUrl: string,
  what: LinkPurpose,
): Promise<{ url: string; expiresAt: number }> {
  const token = randomSecret();
  const expiresAt = clock.now() + LIFE_MS[what.purpose];
  // A member named `accountId` would make the record one of that person's sessions.
  const { accountId: account, ...rest } = { accountId: null, ...what };
  await store.oauth.put(MODEL, token, { ...rest, account, expiresAt }, KNOWN_MS / SECOND_MS);
  return { url: `${pagesUrl}${LINK_PATH}#${token}`, expiresAt };
}

export async function findLink({ store, clock }: LinkDeps, token: string): Promise<LinkState> {
  const found = TOKEN.test(token) ? await store.oauth.find(MODEL, token) : undefined;
  if (!found) return { outcome: "unknown" };
  if (found.consumed !== undefined) return { outcome: "used" };
  const { account, ...rest } = found;
  const link = { ...rest, accountId: account } as unknown as Link;
  return link.expiresAt > clock.now() ? { outcome: "open", link } : { outcome: "expired" };
}

/** Returns true to exactly one of several concurrent callers. */
export const useLink = ({ store }: LinkDeps, token: string): Promise<boolean> => store.oauth.consume(MODEL, token);

/** Changes with every password and reveals nothing about it. */
export const passwordMark = (passwordHash: string | null): string =>
  createHash("sha256").update(`link\0${passwordHash}`).digest("base64url");
