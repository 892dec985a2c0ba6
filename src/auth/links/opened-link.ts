/** A link that a browser has opened. Its page belongs to that browser: the address of the page is worth nothing elsewhere. */
import { randomSecret } from "../../lib/ids.ts";
import { currentBrowser } from "../oauth/step-binding.ts";
import { findLink, type LinkDeps, type LinkState } from "./link-tokens.ts";

const MODEL = "OpenedLink";
/** Long enough to sign in on the way; the link itself can be opened again. */
const KEPT_SECONDS = 3600;

/** Returns the name of the page. */
export async function openLink({ store }: LinkDeps, token: string): Promise<string> {
  const id = randomSecret();
  await store.oauth.put(MODEL, id, { token, browser: currentBrowser()?.id }, KEPT_SECONDS);
  return id;
}

/** Null when this browser has opened no such link. */
export async function findOpened(deps: LinkDeps, id: string): Promise<{ token: string; state: LinkState } | null> {
  const found = await deps.store.oauth.find(MODEL, id);
  const isOwn = found?.browser !== undefined && found.browser === currentBrowser()?.id;
  if (!isOwn) return null;
  const token = String(found?.token);
  return { token, state: await findLink(deps, token) };
}
