/** The few pages that people see while they sign in: plain HTML, nothing loaded from anywhere, no scripts. */
import { createHash } from "node:crypto";

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;margin:0;background:#f4f5f7;color:#1b1f24;display:grid;min-height:100vh;place-items:center}
main{background:#fff;border:1px solid #d8dce1;border-radius:10px;padding:2rem;width:20rem;max-width:calc(100vw - 6rem)}
h1{font-size:1.25rem;margin:0 0 1rem}label{display:block;margin:.75rem 0 .25rem}
input:not([type=hidden]){font:inherit;width:100%;box-sizing:border-box;padding:.5rem;border:1px solid #8b949e;border-radius:6px}
button{font:inherit;margin-top:1.25rem;padding:.5rem 1rem;border-radius:6px;border:1px solid #1f6feb;background:#1f6feb;color:#fff;cursor:pointer}
button.plain{background:transparent;color:inherit;border-color:#8b949e;margin-right:.5rem}
.wrong{color:#b42318}code{font-size:1.1em;letter-spacing:.1em}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}main{background:#161b22;border-color:#30363d}input:not([type=hidden]){background:#0d1117;color:inherit}.wrong{color:#ff7b72}}`;

const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");

/** Every page has them. Forms lead to ourselves alone: what comes after is a navigation of its own (`onwardPage`). */
export const pageHeaders = (): Record<string, string> => ({
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "content-security-policy": `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  // With "no-referrer" browsers send `Origin: null` with our own forms, which nobody could tell from a stranger's.
  "referrer-policy": "same-origin",
  // A window that a workload's page opens must not be readable by it.
  "cross-origin-opener-policy": "same-origin",
});

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

/** `content` is HTML; whatever comes from outside has been escaped. */
export const page = (title: string, content: string): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>${escapeHtml(title)}</title><style>${STYLE}</style></head>
<body><main><h1>${escapeHtml(title)}</h1>${content}</main></body></html>`;

/** A provider that people may sign in with instead. */
export interface OtherWay {
  id: string;
  name: string;
}

const hidden = (name: string, value: string): string =>
  `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`;

/** `secret` is that of the step, in every form of its pages. */
export const signInPage = (
  clientName: string,
  secret: string,
  wrong: string | null,
  email: string,
  others: readonly OtherWay[],
): string =>
  page(
    "Sign in",
    `<p>to continue to ${escapeHtml(clientName)}</p>${wrong === null ? "" : `<p class="wrong" role="alert">${escapeHtml(wrong)}</p>`}
<form method="post">${hidden("step", "login")}${hidden("secret", secret)}
<label for="email">Email</label><input id="email" name="email" type="email" autocomplete="username" required maxlength="254" value="${escapeHtml(email)}">
<label for="password">Password</label><input id="password" name="password" type="password" autocomplete="current-password" required maxlength="256">
<button>Sign in</button></form>${others.map(({ id, name }) => `<form method="post">${hidden("step", "elsewhere")}${hidden("provider", id)}${hidden("secret", secret)}<button class="plain">Sign in with ${escapeHtml(name)}</button></form>`).join("")}`,
  );

/** Somebody has come back from another provider; what that means is theirs to say. */
export const continuePage = (clientName: string, who: string, secret: string, ticket: string): string =>
  page(
    "Continue?",
    `<p>You are <strong>${escapeHtml(who)}</strong>. Continue to ${escapeHtml(clientName)} as this person?</p>
<p>If you did not start this yourself, somebody else is trying to use your account.</p>
<form method="post">${hidden("step", "arrived")}${hidden("ticket", ticket)}${hidden("secret", secret)}<button>Continue</button></form>`,
  );

/** Leads on to another address by itself. A redirect would count as the target of the form that was sent. */
export const onwardPage = (address: string): string => {
  const to = escapeHtml(address);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=${to}"><title>One moment</title></head><body><p><a href="${to}">Continue</a></p></body></html>`;
};

/** `stranger`: where a program that registered itself wants to be answered; its name is whatever it says. */
export const consentPage = (
  clientName: string,
  who: string,
  scopes: readonly string[],
  stranger: string | null,
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
        : `<p>Nobody here has checked this program. It will be answered at <code>${escapeHtml(stranger)}</code>. Allow it only if you have just started it yourself.</p>`
    }
<form method="post">${hidden("secret", secret)}<button name="step" value="allow">Allow</button><button class="plain" name="step" value="deny">Deny</button></form>`,
  );

/** `form` carries the secret of the session, once there is one. */
export const deviceCodePage = (form: string, wrong: string | null): string =>
  page(
    "Connect a device",
    `<p>Enter the code that your terminal shows.</p>${wrong === null ? "" : `<p class="wrong" role="alert">${escapeHtml(wrong)}</p>`}${form}<button form="op.deviceInputForm">Continue</button>`,
  );

export const deviceConfirmPage = (form: string, clientName: string, userCode: string): string =>
  page(
    "Connect a device",
    `<p>Does <strong>${escapeHtml(clientName)}</strong> show this code?</p><p><code>${escapeHtml(userCode)}</code></p>
<p>If you did not start this yourself, somebody else is trying to use your account.</p>${form}
<button form="op.deviceConfirmForm">Yes, continue</button><button class="plain" form="op.deviceConfirmForm" name="abort" value="yes">No, stop</button>`,
  );

export const signOutPage = (who: string, secret: string): string =>
  page(
    "Sign out?",
    `<p>This browser is signed in as <strong>${escapeHtml(who)}</strong>.</p>
<form method="post">${hidden("secret", secret)}<button>Sign out</button></form>`,
  );

export const messagePage = (title: string, text: string): string => page(title, `<p>${escapeHtml(text)}</p>`);
