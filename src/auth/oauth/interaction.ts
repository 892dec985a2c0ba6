/**
 * What happens between a person and us while a program waits for its token: sign in, then allow or deny. The step
 * belongs to the browser that began it: its cookie is bound to the address of the step.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type Provider from "oidc-provider";
import type { InteractionDetails } from "oidc-provider";
import { ExternalError } from "../external/identity-provider.ts";
import { beginExternal, type ExternalDeps, endExternal } from "../external/sign-in.ts";
import { knownBrowser, rememberBrowser } from "../known-browser.ts";
import { signIn } from "../sign-in.ts";
import { consentPage, messagePage, pageHeaders, signInPage } from "./pages.ts";
import { isRegistered, keepRegistered } from "./registration.ts";
import { INTERACTION, PROTOCOL_SCOPES } from "./request.ts";
import { type Origin, recordConsent, recordExternalSignIn, recordSignIn } from "./sign-in-audit.ts";

export interface Exchange {
  provider: Provider;
  request: IncomingMessage;
  response: ServerResponse;
}

export interface InteractionDeps extends ExternalDeps {
  keyFor(purpose: string): Buffer;
  log: { warn(fields: object, message: string): void };
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
    const { cookie } = request.headers;
    const result = await signIn(deps.store, {
      email,
      password: form.get("password") ?? "",
      address: origin.address,
      knownBrowser: (sub) => knownBrowser(deps.keyFor, cookie, sub),
    });
    if (result.outcome !== "too_many_tries" || result.isNews)
      await recordSignIn(deps.store, { email, status: STATUS[result.outcome] }, origin);
    if (result.outcome === "welcome") {
      const isSecure = deps.issuer().startsWith("https:");
      response.appendHeader("set-cookie", rememberBrowser(deps.keyFor, cookie, result.sub, isSecure));
      return finish({ login: { accountId: result.sub } });
    }
    return show(exchange, details, deps, result.outcome, email);
  }
  if (details.prompt.name === "consent" && (step === "allow" || step === "deny")) {
    const { client_id: clientId = "" } = details.params;
    await recordConsent(deps.store, details.session?.accountId ?? "", clientId, step === "allow", origin);
    if (step === "deny") return finish({ error: "access_denied", error_description: "The person said no." });
    await keepRegistered(deps.store, clientId);
    return finish({ consent: { grantId: await grant(provider, details, deps.issuer()) } });
  }
  await show(exchange, details, deps, null, "");
}

/** Leads to another identity provider. */
export async function leaveForProvider(exchange: Exchange, id: string, deps: InteractionDeps): Promise<void> {
  const details = await detailsOf(exchange);
  if (!details) return;
  const address = details.prompt.name === "login" ? await beginExternal(deps, id, details.uid) : null;
  if (address === null) return show(exchange, details, deps, null, "");
  exchange.response.writeHead(303, { ...pageHeaders(), location: address }).end();
}

/** Back from there. */
export async function returnFromProvider(
  exchange: Exchange,
  answer: URLSearchParams,
  origin: Origin,
  deps: InteractionDeps,
): Promise<void> {
  const details = await detailsOf(exchange);
  if (!details) return;
  const result = await endExternal(deps, details.uid, answer).catch((error: unknown) => {
    if (!(error instanceof ExternalError)) throw error;
    deps.log.warn({ err: error, requestId: origin.requestId }, "an identity provider's answer was refused");
    return null;
  });
  if (!result) return reply(exchange.response, 400, messagePage("That did not work", "Go back and try again."));
  const { provider } = result;
  const sub = result.outcome === "welcome" ? result.sub : null;
  await recordExternalSignIn(deps.store, sub, provider, origin);
  if (result.outcome === "refused")
    return reply(exchange.response, 403, messagePage("You were not let in", result.reason));
  await exchange.provider.interactionFinished(exchange.request, exchange.response, {
    login: { accountId: result.sub },
  });
}

const STATUS = { welcome: 200, refused: 401, too_many_tries: 429 } as const;

const WRONG = {
  refused: "That is not the right email and password.",
  too_many_tries: "Too many tries. Wait a quarter of an hour, then try again.",
};

async function show(
  { provider, response }: Exchange,
  details: InteractionDetails,
  { store, identityProviders }: InteractionDeps,
  wrong: keyof typeof WRONG | null,
  email: string,
): Promise<void> {
  const { client_id: clientId = "", redirect_uri: redirectUri } = details.params;
  const client = await provider.Client.find(clientId);
  const name = client?.clientName ?? clientId;
  const status = STATUS[wrong ?? "welcome"];
  if (details.prompt.name === "login") {
    const others = identityProviders.map(({ settings }) => ({
      ...settings,
      href: `${INTERACTION}/${details.uid}/with/${settings.id}`,
    }));
    reply(response, status, signInPage(name, wrong && WRONG[wrong], email, others), redirectUri);
    return;
  }
  const user = await store.people.getUser(details.session?.accountId ?? "");
  const stranger = isRegistered(clientId) ? (redirectUri ?? "") : null;
  reply(response, 200, consentPage(name, user?.email ?? "you", scopesOf(details), stranger), redirectUri);
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
  const { origin = "", protocol = "" } = redirectUri && URL.canParse(redirectUri) ? new URL(redirectUri) : {};
  // An app's own scheme has no origin.
  const targets = redirectUri ? [origin === "null" ? protocol : origin] : [];
  response.writeHead(status, pageHeaders(targets)).end(html);
}
