/** The pages of a signed-in person: their sessions and their password. */
import { alert, button, escapeHtml, hidden, linkTo, page, plainButton, row } from "./layout.ts";
import { newPasswordFields, passwordField, type Wrong } from "./new-password.ts";

export interface SignedIn {
  id: string;
  name: string;
  since: string;
  until: string;
  isThisBrowser: boolean;
}

export const accountPage = (view: {
  email: string;
  workspaces: readonly string[];
  sessions: readonly SignedIn[];
  secret: string;
  /** Address of the password page; null for a person without a password. */
  password: string | null;
  signOut: string;
  /** Message about the action just done. */
  said: string | null;
}): string =>
  page(
    "Your account",
    `${view.said === null ? "" : `<p role="status">${escapeHtml(view.said)}</p>`}<p>You are <strong>${escapeHtml(view.email)}</strong>${view.workspaces.length === 0 ? "" : `, in ${view.workspaces.map(escapeHtml).join(", ")}`}.</p>${
      view.password === null
        ? '<p class="quiet">You have no password here. An admin of the account can give you a link to choose one.</p>'
        : ""
    }${row(...(view.password === null ? [] : [linkTo({ href: view.password, label: "Change password" })]), linkTo({ href: view.signOut, label: "Sign out" }))}
<h2>Where you are signed in</h2><ul>${view.sessions.map((session) => sessionItem(session, view.secret)).join("")}</ul>`,
  );

const sessionItem = ({ id, name, since, until, isThisBrowser }: SignedIn, secret: string): string =>
  `<li><div><p>${escapeHtml(name)}${isThisBrowser ? " (this one)" : ""}</p><p class="quiet">since ${escapeHtml(since)}, until ${escapeHtml(until)}</p></div>${
    isThisBrowser
      ? ""
      : `<form method="post">${hidden("secret", secret)}${hidden("session", id)}${plainButton("Sign out", ` aria-label="Sign out ${escapeHtml(name)}, signed in since ${escapeHtml(since)}"`)}</form>`
  }</li>`;

export const passwordPage = (view: { email: string; secret: string; wrong: Wrong | null; back: string }): string =>
  page(
    "Change your password",
    `<p>Every other browser and every program that is signed in as you is signed out. API keys stay.</p>${alert(view.wrong?.text ?? null)}
<form method="post">${hidden("secret", view.secret)}${newPasswordFields(
      view.email,
      view.wrong,
      passwordField({
        ...{ name: "current", label: "Current password", autocomplete: "current-password" },
        ...{ wrong: view.wrong, isFirst: true },
      }),
    )}${row(button("Change password"), linkTo({ href: view.back, label: "Cancel" }))}</form>`,
  );
