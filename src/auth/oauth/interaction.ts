/**
 * What happens between a person and us while a program waits for its token: sign in, then allow or deny. The step
 * belongs to the browser that began it: its cookie is bound to the address of the step.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type Provider from "oidc-provider";
import type { InteractionDetails } from "oidc-provider";
import type { Store } from "../../store/store.ts";
import { signIn } from "../sign-in.ts";
import { consentPage, messagePage, pageHeaders, signInPage } from "./pages.ts";
import { PROTOCOL_SCOPES } from "./request.ts";
import { type Origin, recordConsent, recordSignIn } from "./sign-in-audit.ts";

export interface Exchange {
  provider: Provider;
  request: IncomingMessage;
  response: ServerResponse;
}

export interface InteractionDeps {
  store: Store;
  issuer(): string;
}

export async function showStep(exchange: Exchange, deps: InteractionDeps): Promise<void> {
  const details = await detailsOf(exchange);
  if (details) await show(exchange, details, deps, null, "");
}

export async function takeStep(
  exchange: Exchange,
  form: URLSearchParams,
  origin: Origin,
  deps: InteractionDeps,
): Promise<void> {
  const details = await detailsOf(exchange);
  if (!details) return;
  const { provider, request, response } = exchange;
  const finish = (result: Record<string, unknown>) => provider.interactionFinished(request, response, result);
  const step = form.get("step");
  if (details.prompt.name === "login" && step === "login") {
    const email = form.get("email") ?? "";
    const result = await signIn(deps.store, { email, password: form.get("password") ?? "", address: origin.address });
    if (result.outcome !== "too_many_tries" || result.isNews)
      await recordSignIn(deps.store, { email, status: STATUS[result.outcome] }, origin);
    if (result.outcome === "welcome") return finish({ login: { accountId: result.sub } });
    return show(exchange, details, deps, result.outcome, email);
  }
  if (details.prompt.name === "consent" && (step === "allow" || step === "deny")) {
    const { client_id: clientId = "" } = details.params;
    await recordConsent(deps.store, details.session?.accountId ?? "", clientId, step === "allow", origin);
    if (step === "deny") return finish({ error: "access_denied", error_description: "The person said no." });
    return finish({ consent: { grantId: await grant(provider, details, deps.issuer()) } });
  }
  await show(exchange, details, deps, null, "");
}

const STATUS = { welcome: 200, refused: 401, too_many_tries: 429 } as const;

const WRONG = {
  refused: "That is not the right email and password.",
  too_many_tries: "Too many tries. Wait a quarter of an hour, then try again.",
};

async function show(
  { provider, response }: Exchange,
  details: InteractionDetails,
  { store }: InteractionDeps,
  wrong: keyof typeof WRONG | null,
  email: string,
): Promise<void> {
  const { client_id: clientId = "", redirect_uri: redirectUri } = details.params;
  const client = await provider.Client.find(clientId);
  const name = client?.clientName ?? clientId;
  const status = STATUS[wrong ?? "welcome"];
  if (details.prompt.name === "login") {
    reply(response, status, signInPage(name, wrong && WRONG[wrong], email), redirectUri);
    return;
  }
  const user = await store.people.getUser(details.session?.accountId ?? "");
  reply(response, 200, consentPage(name, user?.email ?? "you", scopesOf(details)), redirectUri);
}

/** Null when the step is not this browser's, or its time is over; the person has been told. */
async function detailsOf({ provider, request, response }: Exchange): Promise<InteractionDetails | null> {
  try {
    return await provider.interactionDetails(request, response);
  } catch {
    reply(response, 400, messagePage("Start again", "This sign-in has ended. Go back to the program and start again."));
    return null;
  }
}

/** Each consent stands alone, so that one program can be cut off without the others. */
async function grant(provider: Provider, details: InteractionDetails, issuer: string): Promise<string> {
  const made = new provider.Grant({
    accountId: details.session?.accountId ?? "",
    clientId: details.params.client_id ?? "",
  });
  const scope = details.params.scope ?? "";
  made.addOIDCScope(scope);
  for (const resource of [issuer, ...Object.keys(details.prompt.details.missingResourceScopes ?? {})])
    made.addResourceScope(resource, scope);
  return made.save();
}

const scopesOf = ({ params }: InteractionDetails): string[] =>
  (params.scope ?? "").split(" ").filter((scope) => scope !== "" && !PROTOCOL_SCOPES.has(scope));

function reply(response: ServerResponse, status: number, html: string, redirectUri?: string): void {
  const targets = redirectUri && URL.canParse(redirectUri) ? [new URL(redirectUri).origin] : [];
  response.writeHead(status, pageHeaders(targets)).end(html);
}
