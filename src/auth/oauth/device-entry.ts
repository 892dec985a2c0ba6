/**
 * The page on which a person types the code of a device. The authorization server keeps a session for whoever opens
 * its own page; this one keeps nothing: the session begins with a code that a device has really been given.
 */
import type { Store } from "../../store/store.ts";
import { deviceCodePage, escapeHtml } from "./pages.ts";

const CODE_LENGTH_MAX = 64;

/** Null when the code is one that waits for its person; otherwise the page that asks for one. */
export async function deviceEntry(store: Store, action: string, typed: string | null): Promise<string | null> {
  if (typed === null) return deviceCodePage(deviceForm(action), null);
  const code = typed.slice(0, CODE_LENGTH_MAX).toUpperCase().replace(/\W/g, "");
  if (code !== "" && (await store.oauth.findByUserCode("DeviceCode", code))) return null;
  return deviceCodePage(deviceForm(action), "That code is not known, or has been used already.");
}

/** `xsrf` is the secret of a session that has begun; `code` what the person came with. */
export const deviceForm = (action: string, known: { xsrf: string; code: string | null } | null = null): string =>
  `<form id="op.deviceInputForm" method="post" action="${action}">${
    known === null ? "" : `<input type="hidden" name="xsrf" value="${escapeHtml(known.xsrf)}">`
  }<input type="text" name="user_code" aria-label="Code" autofocus autocomplete="off" required maxlength="${CODE_LENGTH_MAX}" value="${escapeHtml(known?.code ?? "")}"></form>`;
