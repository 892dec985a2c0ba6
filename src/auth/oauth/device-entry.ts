/**
 * The page on which a person types a device code. The authorization server's own page creates a session for every
 * visitor; this page stores nothing: a session begins only with a code that a device has really been given.
 */
import type { Store } from "../../store/store.ts";
import { field, hidden } from "../pages/layout.ts";
import { deviceCodePage } from "./pages.ts";

const CODE_LENGTH_MAX = 64;

/** Returns null for a valid pending code; otherwise the page that asks for one. */
export async function deviceEntry(store: Store, action: string, typed: string | null): Promise<string | null> {
  if (typed === null) return deviceCodePage(deviceForm(action, false), null);
  const code = typed.slice(0, CODE_LENGTH_MAX).toUpperCase().replace(/\W/g, "");
  if (code !== "" && (await store.oauth.findByUserCode("DeviceCode", code))) return null;
  return deviceCodePage(deviceForm(action, true), "That code is not known, or has been used already.");
}

/** `xsrf` is the secret of an existing session; `code` the code that the person came with. */
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
