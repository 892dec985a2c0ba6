/** One visit to the page of a link. */
import type { User } from "../../store/people/people.ts";
import type { Exchange } from "../oauth/browser-session.ts";
import type { InteractionDeps } from "../oauth/interaction.ts";
import type { Origin } from "../oauth/sign-in-audit.ts";
import { messagePage } from "../pages/layout.ts";
import type { LinkDeps } from "./link-tokens.ts";

export interface LinkPageDeps extends InteractionDeps, LinkDeps {
  brand: string;
}

export interface LinkVisit {
  exchange: Exchange;
  /** The id of the page. */
  id: string;
  token: string;
  /** The person who is signed in in this browser. */
  signedIn: User | null;
  sessionUid: string;
  origin: Origin;
}

export interface Answer {
  status: number;
  html: string;
}

/** HTTP 410: the link was valid once and no longer works. */
const GONE = 410;

export const refusal = (text: string, status = GONE): Answer => ({
  status,
  html: messagePage("This link does not work", text, { href: "/oauth/account", label: "Sign in" }),
});

/** `2026-03-01 09:30 UTC`: always UTC, because the server does not know the person's time zone. */
export const shownTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")} UTC`;
