/**
 * Signing out (OpenID Connect RP-Initiated Logout): a program sends the person here, or the person comes alone. The
 * person is always asked. Programs keep the access that they were allowed; only the session of the browser ends.
 */
import type { Context } from "oidc-provider";
import type { Store } from "../../store/store.ts";
import { messagePage, pageHeaders } from "../pages/layout.ts";
import { onwardPage, signOutPage } from "./pages.ts";

export const signOutFeature = ({ store }: { store: Store }) => ({
  enabled: true,
  logoutSource: async (context: Context, form: string) => {
    const { session, client } = context.oidc;
    const user = await store.people.getUser(session?.accountId ?? "");
    write(context, signOutPage(form, user?.email ?? "", client?.clientName ?? null));
  },
  postLogoutSuccessSource: (context: Context) => write(context, SIGNED_OUT),
});

const SIGNED_OUT = messagePage(
  "You are signed out",
  "This browser has no session here. Programs that you allowed access keep it; `berth logout` ends theirs.",
  { href: "/oauth/account", label: "Sign in" },
);

/** Replaces two answers of the authorization server that the content security policy of the pages would block. */
export async function afterSignOut(context: Context, next: () => Promise<void>): Promise<void> {
  await next();
  const { route, session, params } = context.oidc ?? {};
  // Its page for a person who is not signed in submits itself by a script.
  if (route === "end_session" && session !== undefined && session.accountId === undefined && context.status === 200) {
    const { post_logout_redirect_uri: back, state } = params ?? {};
    write(context, typeof back === "string" ? onwardPage(withState(back, state)) : SIGNED_OUT);
  }
  // CSP's `form-action` would check a redirect to a program as the target of the submitted form.
  if (route === "end_session_confirm" && context.status === 303) {
    const location = context.response.get("location");
    context.remove("location");
    context.status = 200;
    write(context, onwardPage(location));
  }
}

function withState(address: string, state: unknown): string {
  if (typeof state !== "string") return address;
  const url = new URL(address);
  url.searchParams.set("state", state);
  return url.href;
}

function write(context: Context, html: string): void {
  for (const [name, value] of Object.entries(pageHeaders())) context.set(name, value);
  context.body = html;
}
