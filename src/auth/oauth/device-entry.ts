/**
 * The page on which a person types the code of a device. The authorization server keeps a session for whoever opens
 * its own page; this one keeps nothing: the session begins with a code that a device has really been given.
 */
import type { Store } from "../../store/store.ts";
import { field, hidden } from "../pages/layout.ts";
import { deviceCodePage } from "./pages.ts";

const CODE_LENGTH_MAX = 64;

/** Null when the code is one that waits for its person; otherwise the page that asks for one. */
export async function deviceEntry(store: Store, action: string, typed: string | null): Promise<string | null> {
  if (typed === null) return deviceCodePage(deviceForm(action, false), null);
  const code = typed.slice(0, CODE_LENGTH_MAX).toUpperCase().replace(/\W/g, "");
  if (code !== "" && (await store.oauth.findByUserCode("DeviceCode", code))) return null;
  return deviceCodePage(deviceForm(action, true), "That code is not known, or has been used already.");
}

/** `xsrf` is the secret of a session that has begun; `code` what the person came with. */
export const deviceForm = (
  action: string,
  isWrong: boolean,
  known: { xsrf: string; code: string | null } | null = null,
): string =>
  `<form id="op.deviceInputForm" method="post" action="${action}">${known === null ? "" : hidden("xsrf", known.xsrf)}${field(
    {
      ...{ name: "user_code", label: "Code", type: "text", autocomplete: "off", maxLength: CODE_LENGTH_MAX },
      ...{ value: known?.code ?? "", isWrong, isFirst: true },
    },
  )}</form>`;
