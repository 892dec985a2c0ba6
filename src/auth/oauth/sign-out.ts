/** The page on which a person ends the session of this browser. */
import type { InteractionDeps, StepExchange } from "./interaction.ts";
import { messagePage, pageHeaders, signOutPage } from "./pages.ts";
import { isStepSecret, stepSecret } from "./step-binding.ts";

export async function showSignOut(exchange: StepExchange, deps: InteractionDeps): Promise<void> {
  const session = await sessionOf(exchange);
  const user = session.accountId === undefined ? null : await deps.store.people.getUser(session.accountId);
  const html = user ? signOutPage(user.email, stepSecret(deps.keyFor, stepOf(session.uid))) : SIGNED_OUT;
  exchange.response.writeHead(200, pageHeaders()).end(html);
}

export async function signOut(exchange: StepExchange, form: URLSearchParams, deps: InteractionDeps): Promise<void> {
  const session = await sessionOf(exchange);
  if (!isStepSecret(deps.keyFor, stepOf(session.uid), form.get("secret"))) return showSignOut(exchange, deps);
  await session.destroy();
  exchange.response.writeHead(200, pageHeaders()).end(SIGNED_OUT);
}

const SIGNED_OUT = messagePage(
  "You are signed out",
  "This browser has no session here. Programs that you allowed access keep it; `berth logout` ends theirs.",
);

const stepOf = (uid: string) => ({ uid, question: "sign-out" });

const sessionOf = ({ provider, request, response }: StepExchange) =>
  provider.Session.get(provider.createContext(request, response));
