/** A link that a browser has opened. The page belongs to that browser; its address is worth nothing in another one. */
import { randomSecret } from "../../lib/ids.ts";
import { currentBrowser } from "../oauth/step-binding.ts";
import { findLink, type LinkDeps, type LinkState } from "./link-tokens.ts";

const MODEL = "OpenedLink";
/** How long the page lives: enough to sign in meanwhile. The link itself can be opened again. */
const KEPT_SECONDS = 3600;

/** Returns the id of the page. */
export async function openLink({ store }: LinkDeps, token: string): Promise<string> {
  const id = randomSecret();
  await store.oauth.put(MODEL, id, { token, browser: currentBrowser()?.id }, KEPT_SECONDS);
  return id;
}

/** Returns null when this browser has opened no such link. */
export async function findOpened(deps: LinkDeps, id: string): Promise<{ token: string; state: LinkState } | null> {
  const found = await deps.store.oauth.find(MODEL, id);
  const isOwn = found?.browser !== undefined && found.browser === currentBrowser()?.id;
  if (!isOwn) return null;
  const token = String(found?.token);
  return { token, state: await findLink(deps, token) };
}
