/** The pages behind a link: an invitation, a new password. */
import { alert, button, escapeHtml, field, hidden, linkTo, page, plainButton, row } from "./layout.ts";
import { newPasswordFields, type Wrong } from "./new-password.ts";

/** Moves the token from the address into the form and submits it; the only script of the pages. */
export const LINK_SCRIPT = `addEventListener("DOMContentLoaded",()=>{const token=location.hash.slice(1);if(!token)return;history.replaceState(null,"",location.pathname);document.getElementById("token").value=token;document.forms[0].submit()})`;

const TOKEN_LENGTH_MAX = 200;

/** Without scripts, or when the link lost its end, the person enters the code by hand. */
export const linkEntryPage = (secret: string): string =>
  page(
    "Open your link",
    `<p>The code of your link is the part behind the <code>#</code>.</p>
<form method="post">${hidden("secret", secret)}${field({ name: "token", label: "Code", type: "text", autocomplete: "off", maxLength: TOKEN_LENGTH_MAX })}${row(button("Continue"))}</form>
<script>${LINK_SCRIPT}</script>`,
  );

export interface InvitationView {
  email: string;
  inviter: string;
  workspace: string;
  account: string;
  role: "admin" | "member";
  ends: string;
  secret: string;
  wrong: Wrong | null;
  /** Another person who is signed in in this browser. */
  otherPerson: string | null;
  /** The sign-in address for the invited person. */
  signIn: string;
  /**
   * `new`: nobody has the address yet, so the person chooses a password. `known`: the person signs in first.
   * `here`: the person is signed in in this browser.
   */
  person: "new" | "known" | "here";
  /** Names of the external providers that the person can sign in with. */
  providers: readonly string[];
}

const ROLES = {
  member: "as a member, who uses and changes what is in it",
  admin: "as an admin, who also manages its people and sees its secrets",
};

export const invitationPage = (view: InvitationView): string =>
  page(
    `Join ${view.workspace}`,
    `<p><strong>${escapeHtml(view.inviter)}</strong> invites <strong>${escapeHtml(view.email)}</strong> to the workspace <strong>${escapeHtml(view.workspace)}</strong> (account ${escapeHtml(view.account)}), ${ROLES[view.role]}.</p>
<p class="quiet">The link works once, until ${escapeHtml(view.ends)}.</p>${
      view.otherPerson === null
        ? ""
        : `<p class="quiet">This browser is signed in as ${escapeHtml(view.otherPerson)}. The invitation is for somebody else.</p>`
    }${alert(view.wrong?.text ?? null)}${ANSWERS[view.person](view)}`,
  );

const DECLINE = plainButton("Decline", ' name="step" value="decline" formnovalidate');
const JOIN = button("Join", ' name="step" value="join"');

const ANSWERS: Record<InvitationView["person"], (view: InvitationView) => string> = {
  new: ({ email, secret, wrong, signIn, providers }) =>
    `<form method="post">${hidden("secret", secret)}${newPasswordFields(email, wrong)}${row(JOIN, DECLINE)}</form>${
      providers.length === 0
        ? ""
        : row(linkTo({ href: signIn, label: `Sign in with ${providers.join(" or ")} instead` }))
    }`,
  known: ({ secret, signIn }) =>
    `<form method="post">${hidden("secret", secret)}${row(linkTo({ href: signIn, label: "Sign in to join" }, ""), DECLINE)}</form>`,
  here: ({ secret }) => `<form method="post">${hidden("secret", secret)}${row(JOIN, DECLINE)}</form>`,
};

export const joinedPage = (view: { workspace: string; email: string; server: string; account: string }): string =>
  page(
    `You are in ${view.workspace}`,
    `<p>You are signed in as <strong>${escapeHtml(view.email)}</strong>. To go on at a terminal:</p>
<kbd>berth login ${escapeHtml(view.server)}</kbd>${row(linkTo({ href: view.account, label: "Your account" }))}`,
  );

export const passwordLinkPage = (view: {
  email: string;
  isFirst: boolean;
  ends: string;
  secret: string;
  wrong: Wrong | null;
}): string =>
  page(
    view.isFirst ? "Choose a password" : "Choose a new password",
    `<p>${view.isFirst ? "With it you sign in as" : "It replaces the one of"} <strong>${escapeHtml(view.email)}</strong>${view.isFirst ? "" : ", and every browser and program that is signed in as you is signed out"}.</p>
<p class="quiet">The link works once, until ${escapeHtml(view.ends)}.</p>${alert(view.wrong?.text ?? null)}
<form method="post">${hidden("secret", view.secret)}${newPasswordFields(view.email, view.wrong)}${row(button("Set password"))}</form>`,
  );
