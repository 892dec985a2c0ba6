/** The pages for signing in and for allowing a program access. */
import { PASSWORD_LENGTH_MAX } from "../../contract/password-length.ts";
import { alert, button, escapeHtml, field, hidden, linkTo, page, plainButton, row } from "../pages/layout.ts";
import { EMAIL_LENGTH_MAX } from "../sign-in.ts";

/** An external provider that people may sign in with. */
export interface OtherWay {
  id: string;
  name: string;
}

/** `secret` is the secret of the step, which every form of its pages carries. */
export const signInPage = (
  clientName: string,
  secret: string,
  wrong: string | null,
  email: string,
  others: readonly OtherWay[],
): string =>
  page(
    "Sign in",
    `<p>to continue to ${escapeHtml(clientName)}</p>${alert(wrong)}
<form method="post">${hidden("step", "login")}${hidden("secret", secret)}${field({
      ...{ name: "email", label: "Email", type: "email", autocomplete: "username", maxLength: EMAIL_LENGTH_MAX },
      ...{ value: email, isWrong: wrong !== null, isFirst: email === "" },
    })}${field({
      ...{ name: "password", label: "Password", type: "password", autocomplete: "current-password" },
      ...{ maxLength: PASSWORD_LENGTH_MAX, isWrong: wrong !== null, isFirst: email !== "" },
    })}${row(button("Sign in"))}</form>${others.map((other) => otherWayForm(other, secret)).join("")}`,
  );

const otherWayForm = ({ id, name }: OtherWay, secret: string): string =>
  `<form method="post">${hidden("step", "elsewhere")}${hidden("provider", id)}${hidden("secret", secret)}${plainButton(`Sign in with ${name}`)}</form>`;

/** Asks a person who came back from an external provider to confirm the sign-in. */
export const continuePage = (clientName: string, who: string, secret: string, ticket: string): string =>
  page(
    "Continue?",
    `<p>You are <strong>${escapeHtml(who)}</strong>. Continue to ${escapeHtml(clientName)} as this person?</p>
<p>If you did not start this yourself, somebody else is trying to use your account.</p>
<form method="post">${hidden("step", "arrived")}${hidden("ticket", ticket)}${hidden("secret", secret)}${row(button("Continue"))}</form>`,
  );

/** Redirects by a page: CSP's `form-action` would check a real redirect as the target of the submitted form. */
export const onwardPage = (address: string): string => {
  const to = escapeHtml(address);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=${to}"><title>One moment</title></head><body><p><a href="${to}">Continue</a></p></body></html>`;
};

/** `stranger` is the redirect address of a program that registered itself, whose name may be false. */
/** A program that nobody here has checked. */
export interface Stranger {
  redirectUri: string;
  /** Address of the document that describes it; null for one that registered itself. */
  document: string | null;
}

export const consentPage = (
  clientName: string,
  who: string,
  scopes: readonly string[],
  stranger: Stranger | null,
  secret: string,
): string =>
  page(
    "Allow access?",
    `<p><strong>${escapeHtml(clientName)}</strong> wants to act for ${escapeHtml(who)}, with ${
      scopes.includes("admin") || scopes.length === 0
        ? "everything that you may do."
        : `these rights:</p><p>${scopes.map((scope) => `<code>${escapeHtml(scope)}</code>`).join("<br>")}`
    }</p>${
      stranger === null
        ? ""
        : `<p>Nobody here has checked this program.${
            stranger.document === null
              ? ""
              : ` <strong>${escapeHtml(new URL(stranger.document).host)}</strong> describes it, at <code>${escapeHtml(stranger.document)}</code>.`
          } It will be answered at <code>${escapeHtml(stranger.redirectUri)}</code>. Allow it only if you have just started it yourself.</p>`
    }
<form method="post">${hidden("secret", secret)}${row(button("Allow", ' name="step" value="allow"'), plainButton("Deny", ' name="step" value="deny"'))}</form>`,
  );

/** `form` carries the secret of the session, if there is one. */
export const deviceCodePage = (form: string, wrong: string | null): string =>
  page(
    "Connect a device",
    `<p>Enter the code that your terminal shows.</p>${alert(wrong)}${form}${row(button("Continue", ' form="op.deviceInputForm"'))}`,
  );

export const deviceConfirmPage = (form: string, clientName: string, userCode: string): string =>
  page(
    "Connect a device",
    `<p>Does <strong>${escapeHtml(clientName)}</strong> show this code?</p><p><code>${escapeHtml(userCode)}</code></p>
<p>If you did not start this yourself, somebody else is trying to use your account.</p>${form}
${row(button("Yes, continue", ' form="op.deviceConfirmForm"'), plainButton("No, stop", ' form="op.deviceConfirmForm" name="abort" value="yes"'))}`,
  );

/** `form` is the authorization server's own form, with the secret of the session. */
export const signOutPage = (form: string, who: string, clientName: string | null): string =>
  page(
    "Sign out?",
    `<p>${clientName === null ? "" : `<strong>${escapeHtml(clientName)}</strong> asks you to sign out. `}This browser is signed in as <strong>${escapeHtml(who)}</strong>.</p>${form}
${row(button("Sign out", ' form="op.logoutForm" name="logout" value="yes"'), linkTo({ href: "/oauth/account", label: "Stay signed in" }))}`,
  );
