/**
 * The steps of a person while a program waits for its token: sign in, then allow or deny. A step belongs to the browser
 * that began it (step-binding.ts), and only its own pages can submit it.
 */
import type { ServerResponse } from "node:http";
import type Provider from "oidc-provider";
import type { InteractionDetails } from "oidc-provider";
import { ExternalError } from "../external/identity-provider.ts";
import { beginExternal, type ExternalDeps, endExternal, keepArrival, takeArrival } from "../external/sign-in.ts";
import { knownBrowser, rememberBrowser } from "../known-browser.ts";
import { messagePage, pageHeaders } from "../pages/layout.ts";
import { signIn } from "../sign-in.ts";
import { type Exchange, vacateSession } from "./browser-session.ts";
import { isDocument, isStranger } from "./clients.ts";
import { consentPage, continuePage, onwardPage, signInPage } from "./pages.ts";
import { keepRegistered } from "./registration.ts";
import { INTERACTION, PROTOCOL_SCOPES } from "./request.ts";
import { type Origin, recordConsent, recordExternalSignIn, recordSignIn } from "./sign-in-audit.ts";
import { isStepSecret, stepSecret } from "./step-binding.ts";

export interface InteractionDeps extends ExternalDeps {
  keyFor(purpose: string): Buffer;
  log: { warn(fields: object, message: string): void };
  /** Origin of the pages that people see. */
  pagesUrl(): string;
  /** False when pages of workloads could set cookies beside the platform's own. */
  cookiesAreOwn(): boolean;
}

export async function showStep(exchange: Exchange, deps: InteractionDeps): Promise<void> {
  const details = await detailsOf(exchange);
  if (details) await show(exchange, details, deps, null, details.params.login_hint ?? "");
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
  if (!isStepSecret(deps.keyFor, stepOf(details), form.get("secret"))) return startAgain(response);
  const finish = (result: Record<string, unknown>) => goOn(exchange, result);
  const step = form.get("step");
  if (details.prompt.name === "login" && step === "elsewhere") {
    const address = await beginExternal(deps, form.get("provider") ?? "", details.uid);
    if (address !== null) return reply(response, 200, onwardPage(address));
  }
  if (details.prompt.name === "login" && step === "arrived") {
    const sub = await takeArrival(deps, details.uid, form.get("ticket") ?? "");
    return sub === null ? startAgain(response) : welcome(exchange, sub);
  }
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
      const isSecure = deps.pagesUrl().startsWith("https:");
      response.appendHeader("set-cookie", rememberBrowser(deps.keyFor, cookie, result.sub, isSecure));
      return welcome(exchange, result.sub);
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

/** Handles the return from an external identity provider. */
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
  const again = { href: `${INTERACTION}/${details.uid}`, label: "Back to sign-in" };
  if (!result) {
    const text = "The other provider's answer cannot be used. Try again, or sign in another way.";
    return reply(exchange.response, 400, messagePage("That did not work", text, again));
  }
  const { provider } = result;
  const sub = result.outcome === "welcome" ? result.sub : null;
  await recordExternalSignIn(deps.store, sub, provider, origin);
  if (result.outcome === "refused")
    return reply(exchange.response, 403, messagePage("You were not let in", result.reason, again));
  if (deps.cookiesAreOwn()) return welcome(exchange, result.sub);
  const ticket = await keepArrival(deps, details.uid, result.sub);
  const user = await deps.store.people.getUser(result.sub);
  const html = continuePage(await clientNameOf(exchange, details), user?.email ?? "", secretOf(deps, details), ticket);
  reply(exchange.response, 200, html);
}

/** Signs the person in, whoever was signed in before. */
async function welcome(exchange: Exchange, sub: string): Promise<void> {
  const { provider, request, response } = exchange;
  const address = await provider.interactionResult(request, response, { login: { accountId: sub } });
  await vacateSession(exchange, sub);
  reply(response, 200, onwardPage(address));
}

/** Stores the result of the step and sends the browser on. */
async function goOn({ provider, request, response }: Exchange, result: Record<string, unknown>): Promise<void> {
  reply(response, 200, onwardPage(await provider.interactionResult(request, response, result)));
}

const stepOf = ({ uid, prompt }: InteractionDetails) => ({ uid, question: prompt.name });
const secretOf = ({ keyFor }: InteractionDeps, details: InteractionDetails): string =>
  stepSecret(keyFor, stepOf(details));

async function clientNameOf({ provider }: Exchange, { params }: InteractionDetails): Promise<string> {
  const { client_id: clientId = "" } = params;
  return (await provider.Client.find(clientId))?.clientName ?? clientId;
}

const startAgain = (response: ServerResponse): void =>
  reply(response, 400, messagePage("Start again", "This sign-in has ended. Go back to the program and start again."));

const STATUS = { welcome: 200, refused: 401, too_many_tries: 429 } as const;

const WRONG = {
  refused: "That is not the right email and password.",
  too_many_tries: "Too many tries. Wait a quarter of an hour, then try again.",
};

async function show(
  exchange: Exchange,
  details: InteractionDetails,
  deps: InteractionDeps,
  wrong: keyof typeof WRONG | null,
  email: string,
): Promise<void> {
  const { response } = exchange;
  const { client_id: clientId = "", redirect_uri: redirectUri } = details.params;
  const name = await clientNameOf(exchange, details);
  const secret = secretOf(deps, details);
  if (details.prompt.name === "login") {
    const others = deps.identityProviders.map(({ settings }) => settings);
    reply(response, STATUS[wrong ?? "welcome"], signInPage(name, secret, wrong && WRONG[wrong], email, others));
    return;
  }
  const user = await deps.store.people.getUser(details.session?.accountId ?? "");
  const stranger = isStranger(clientId) ? { redirectUri: redirectUri ?? "", document: documentOf(clientId) } : null;
  reply(response, 200, consentPage(name, user?.email ?? "you", scopesOf(details), stranger, secret));
}

const documentOf = (clientId: string): string | null => (isDocument(clientId) ? clientId : null);

/** Returns null when the step belongs to another browser or has expired; the person has then been told. */
async function detailsOf({ provider, request, response }: Exchange): Promise<InteractionDetails | null> {
  try {
    return await provider.interactionDetails(request, response);
  } catch {
    startAgain(response);
    return null;
  }
}

/** Every sign-in gets a consent of its own, so that one program can be cut off without the others. */
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

function reply(response: ServerResponse, status: number, html: string): void {
  response.writeHead(status, pageHeaders()).end(html);
}
