/**
 * The session of this browser. The cookie is out of reach of this program; what it gets for the cookie is a token of a
 * few minutes, which stays in memory.
 */
import { signal } from "@preact/signals";
import { earlyToken } from "../lib/early-token.ts";
import { failureOf, unreachable } from "./failure.ts";

export type SessionState = "unknown" | "open" | "none" | "linkGone" | "linkOfAnother";

export const sessionState = signal<SessionState>("unknown");

/** A link for another person than the one who is signed in: it is used only when they say so. */
export const otherLink = signal<{ secret: string; text: string } | null>(null);

/** How long before its end a token is replaced. */
const EARLY_MS = 60_000;

let held: { token: string; until: number } | null = null;
let asking: Promise<string> | null = null;

/** The token for the next request. Rejects, and shows the sign-in, when this browser has no session. */
export async function token(): Promise<string> {
  if (held !== null && held.until - EARLY_MS > Date.now()) return held.token;
  asking ??= ask().finally(() => {
    asking = null;
  });
  return asking;
}

export function forgetToken(): void {
  held = null;
}

async function ask(): Promise<string> {
  const response = (await earlyToken()) ?? (await post("/console/token"));
  if (!response.ok) {
    if (response.status === 401) sessionState.value = "none";
    throw await failureOf(response);
  }
  const told = (await response.json()) as { token: string; expiresIn: number };
  held = { token: told.token, until: Date.now() + told.expiresIn * 1000 };
  sessionState.value = "open";
  return told.token;
}

const LINK = /^#([\w-]{43})$/;

/** The page was opened by a link, whose secret stands behind the `#`. */
export const isByLink = LINK.test(location.hash);

/** Uses the secret of a link and removes it from the address. */
export async function openSession(): Promise<void> {
  const secret = LINK.exec(location.hash)?.[1];
  if (secret !== undefined) {
    history.replaceState(null, "", location.pathname + location.search);
    const response = await post("/console/session", { link: secret });
    if (response.status === 409) {
      otherLink.value = { secret, text: (await failureOf(response)).message };
      sessionState.value = "linkOfAnother";
      return;
    }
    if (!response.ok && (await hasNoSession())) {
      sessionState.value = "linkGone";
      return;
    }
  }
  await token().catch(() => {
    if (sessionState.value === "unknown") sessionState.value = "none";
  });
}

/** Uses the link of another person, or goes on without it. */
export async function answerOtherLink(isUsed: boolean): Promise<void> {
  const link = otherLink.value?.secret ?? "";
  otherLink.value = null;
  forgetToken();
  if (isUsed) await post("/console/session", { link, replace: "true" });
  await token().catch(() => {
    sessionState.value = isUsed ? "linkGone" : "none";
  });
}

const hasNoSession = (): Promise<boolean> =>
  token().then(
    () => false,
    () => true,
  );

export async function signOut(): Promise<void> {
  const response = await post("/console/sign-out");
  forgetToken();
  const { next } = (await response.json()) as { next: string };
  location.assign(next);
}

const post = (path: string, body?: object): Promise<Response> =>
  fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body ?? {}),
    credentials: "same-origin",
  }).catch(() => {
    throw unreachable();
  });
