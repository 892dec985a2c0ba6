/**
 * The way to an external identity provider and back, within a step of the platform's own sign-in. The data for the way
 * back is stored under `state`, is used once, and belongs to the browser that began: its cookie opens the step.
 */
import { createHash } from "node:crypto";
import { randomSecret } from "../../lib/ids.ts";
import type { Store } from "../../store/store.ts";
import { type Admission, admit } from "./admission.ts";
import type { IdentityProvider } from "./identity-provider.ts";

const MODEL = "ExternalSignIn";
/** How long the way to the provider and back may take: enough to find a password. */
const KEPT_SECONDS = 600;

export interface ExternalDeps {
  store: Store;
  /** The platform's own issuer address, known only once the server listens. */
  issuer(): string;
  identityProviders: readonly IdentityProvider[];
}

/** Where providers send people back to. Each provider has its own address, so that none can pass for another. */
export const CALLBACK = "/oauth/external";
const callbackOf = (issuer: string, provider: IdentityProvider): string =>
  `${issuer}${CALLBACK}/${provider.settings.id}`;

/** The address to send the browser to; null when there is no such provider. */
export async function beginExternal(
  { store, issuer, identityProviders }: ExternalDeps,
  id: string,
  interaction: string,
): Promise<string | null> {
  const provider = identityProviders.find(({ settings }) => settings.id === id);
  if (!provider) return null;
  const [state, nonce, codeVerifier] = [randomSecret(), randomSecret(), randomSecret()];
  await store.oauth.put(MODEL, state, { interaction, provider: id, nonce, codeVerifier }, KEPT_SECONDS);
  return provider.authorizationUrl({
    state,
    nonce,
    codeChallenge: createHash("sha256").update(codeVerifier).digest("base64url"),
    redirectUri: callbackOf(issuer(), provider),
  });
}

const TICKET = "ExternalArrival";

/** Stores a person who came back from a provider until they confirm it; the ticket is used once. */
export async function keepArrival({ store }: ExternalDeps, interaction: string, sub: string): Promise<string> {
  const ticket = randomSecret();
  await store.oauth.put(TICKET, ticket, { interaction, sub }, KEPT_SECONDS);
  return ticket;
}

export async function takeArrival(
  { store }: ExternalDeps,
  interaction: string,
  ticket: string,
): Promise<string | null> {
  const known = await store.oauth.find(TICKET, ticket);
  if (known?.interaction !== interaction || !(await store.oauth.consume(TICKET, ticket))) return null;
  return String(known.sub);
}

/** The step that an answer belongs to; null when the platform did not ask for it. */
export async function interactionOf({ store }: ExternalDeps, id: string, state: string): Promise<string | null> {
  const known = await store.oauth.find(MODEL, state);
  return known?.provider === id && typeof known.interaction === "string" ? known.interaction : null;
}

export async function endExternal(
  { store, issuer, identityProviders }: ExternalDeps,
  interaction: string,
  answer: URLSearchParams,
): Promise<(Admission & { provider: string }) | null> {
  const state = answer.get("state") ?? "";
  const known = await store.oauth.find(MODEL, state);
  const provider = identityProviders.find(({ settings }) => settings.id === known?.provider);
  if (!known || !provider || known.interaction !== interaction) return null;
  if (!(await store.oauth.consume(MODEL, state))) return null;
  const { id, name, issuer: theirs } = provider.settings;
  const code = answer.get("code");
  // An `iss` parameter must name the provider that was asked.
  if (code === null || (answer.get("iss") ?? theirs) !== theirs)
    return { outcome: "refused", reason: `${name} did not let you in.`, provider: id };
  const person = await provider.redeem({
    code,
    codeVerifier: String(known.codeVerifier),
    nonce: String(known.nonce),
    redirectUri: callbackOf(issuer(), provider),
  });
  return { ...(await admit(store, person, provider.settings)), provider: id };
}
