/**
 * The authorization server: oidc-provider with the platform's own store, clients and users. It is loaded at the first
 * OAuth request, because most servers on a laptop never see one, and created again when the signing key is replaced.
 */
import { createPrivateKey } from "node:crypto";
import type Provider from "oidc-provider";
import type { Client, Context, Token } from "oidc-provider";
import { cookieMark } from "../../contract/platform-cookies.ts";
import { type Clock, DAY_MS, MINUTE_MS, SECOND_MS } from "../../lib/time/clock.ts";
import type { KeyPair } from "../../store/people/signing-keys.ts";
import type { ExternalDeps } from "../external/sign-in.ts";
import { copyOf, type MachineDeps, verifyMachine } from "../machine-secrets.ts";
import { messagePage, pageHeaders } from "../pages/layout.ts";
import { ACCESS_TOKEN_SECONDS, generateSigningPair, SIGNING_ALG, SIGNING_PURPOSE } from "./access-tokens.ts";
import { createAdapter } from "./adapter.ts";
import { SESSION_COOKIE, SESSION_SECONDS } from "./browser-session.ts";
import type { ClientDocuments } from "./client-document.ts";
import { deviceForm } from "./device-entry.ts";
import { deviceCodePage, deviceConfirmPage } from "./pages.ts";
import { clientOf, INTERACTION } from "./request.ts";
import { INTROSPECTION, REGISTRATION, ROUTES } from "./routes.ts";
import { recordMachineToken } from "./sign-in-audit.ts";
import { afterSignOut, signOutFeature } from "./sign-out.ts";
import { cookieNames, currentBrowser } from "./step-binding.ts";

/** How often each server checks for a replaced signing key. */
const KEY_LOOK_MS = MINUTE_MS;

/** Polling interval of a device that waits for a person's answer. */
const DEVICE_POLL_SECONDS = 3;

const DAY_SECONDS = DAY_MS / SECOND_MS;
const TTL_SECONDS = {
  ClientCredentials: ACCESS_TOKEN_SECONDS,
  AccessToken: ACCESS_TOKEN_SECONDS,
  AuthorizationCode: 60,
  DeviceCode: 600,
  Interaction: 600,
  IdToken: ACCESS_TOKEN_SECONDS,
  // A program that is used once a month stays signed in: each use issues a new refresh token.
  RefreshToken: 30 * DAY_SECONDS,
  Grant: 365 * DAY_SECONDS,
  Session: SESSION_SECONDS,
};

export interface OauthDeps extends MachineDeps, ExternalDeps {
  cookiesAreOwn(): boolean;
  clock: Clock;
  log: { warn(fields: object, message: string): void };
  scopes: ReadonlySet<string>;
  /** The scopes that a member can use. */
  memberScopes: ReadonlySet<string>;
  brand: string;
  /** Clients whose ids are addresses. */
  documents: ClientDocuments;
  /** Origin of the pages that people see. */
  pagesUrl(): string;
  /** Resolves when every process of the server has heard of the changes so far; absent = there is only this one. */
  settled?: () => Promise<void>;
  /** True for a host name of a workload: this server issues tokens for it. */
  isWorkloadHost(host: string): boolean;
}

/** Returns the server that signs with the current key. */
export function createProviders(deps: OauthDeps): () => Promise<Provider> {
  let made: { keyId: string; provider: Promise<Provider> } | null = null;
  let lookedAt = Number.NEGATIVE_INFINITY;
  return async () => {
    const now = deps.clock.now();
    if (made && now - lookedAt < KEY_LOOK_MS) return made.provider;
    const key = await deps.store.signingKeys.current(SIGNING_PURPOSE, generateSigningPair);
    lookedAt = now;
    if (made?.keyId !== key.id) made = { keyId: key.id, provider: makeProvider(deps, key) };
    return made.provider;
  };
}

async function makeProvider(deps: OauthDeps, key: KeyPair): Promise<Provider> {
  const { default: OidcProvider } = await import("oidc-provider");
  const provider = new OidcProvider(deps.issuer(), configuration(deps, key));
  // Requests arrive rewritten, with the issuer as forwarded host, so that every generated address is the issuer's.
  provider.proxy = true;
  provider.on("server_error", (_context, error) => deps.log.warn({ err: error }, "an OAuth request failed"));
  provider.on("grant.success", (context) => {
    const { oidc, ip, headers } = context as Context;
    if (oidc.client === undefined || oidc.params?.grant_type !== "client_credentials") return;
    const origin = { address: ip, requestId: String(headers["x-request-id"]) };
    recordMachineToken(deps.store, oidc.client.clientId, origin).catch((error: unknown) =>
      deps.log.warn({ err: error, ...origin }, "a token is missing in the audit log"),
    );
  });
  // The standard makes `interval` optional, but clients without one poll as fast as they like.
  provider.use(async (context, next) => {
    await next();
    const { body } = context as { body: unknown };
    if (typeof body === "object" && body !== null && "device_code" in body)
      Object.assign(body, { interval: DEVICE_POLL_SECONDS });
  });
  provider.use(async (context, next) => {
    await next();
    const { method } = context as unknown as { method: string };
    if (method !== "GET") await deps.settled?.();
  });
  provider.use(afterSignOut);
  Object.assign(provider.Client.prototype, {
    compareClientSecret(this: Client, secret: string) {
      return verifyMachine(deps, this.clientId, secret).then((account) => account !== null);
    },
  });
  return provider;
}

function configuration(deps: OauthDeps, key: KeyPair): Record<string, unknown> {
  const issuer = deps.issuer();
  const signingKey = {
    ...createPrivateKey(key.privateKey).export({ format: "jwk" }),
    kid: key.id,
    alg: SIGNING_ALG,
    use: "sig",
  };
  return {
    adapter: createAdapter(deps),
    jwks: { keys: [signingKey] },
    discovery: {
      introspection_endpoint: `${issuer}${INTROSPECTION}`,
      registration_endpoint: `${issuer}${REGISTRATION}`,
      client_id_metadata_document_supported: true,
    },
    routes: ROUTES,
    scopes: ["openid", "offline_access", ...deps.scopes],
    clientDefaults: { id_token_signed_response_alg: SIGNING_ALG },
    enabledJWA: { idTokenSigningAlgValues: [SIGNING_ALG] },
    extraClientMetadata: { properties: ["workspace", "account"] },
    clientBasedCORS: () => false,
    renderError: (context: Context, out: Record<string, string>) =>
      write(context, messagePage("That did not work", out.error_description ?? out.error ?? "")),
    ttl: TTL_SECONDS,
    // Programs get codes; the platform's own pages only need the person to be signed in.
    responseTypes: ["code", "none"],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: (_context: Context, client: Client) => client.grantTypeAllowed("refresh_token"),
    expiresWithSession: () => false,
    extraTokenClaims: (context: Context, token: Token) => claimsOf(context, token, deps),
    findAccount: async (_context: Context, sub: string) => {
      const user = await deps.store.people.getUser(sub);
      return user && { accountId: user.sub, claims: () => ({ sub: user.sub, email: user.email }) };
    },
    // Never the session's grant: each sign-in of a program gets its own consent, which can be revoked separately.
    loadExistingGrant: ({ oidc: { provider, result } }: Context) =>
      result?.consent?.grantId === undefined ? undefined : provider.Grant.find(result.consent.grantId),
    interactions: { url: (_context: Context, { uid }: { uid: string }) => `${INTERACTION}/${uid}` },
    cookies: {
      keys: [deps.keyFor("oauth-cookies").toString("base64url")],
      names: {
        session: cookieNames(deps.brand, deps.pagesUrl().startsWith("https:")).session,
        // Sent to the address of their step alone, and of no use in another browser (step-binding.ts).
        interaction: `${cookieMark(deps.brand)}step`,
        resume: `${cookieMark(deps.brand)}step_resume`,
      },
      long: SESSION_COOKIE,
      short: { httpOnly: true, sameSite: "lax" },
    },
    features: {
      devInteractions: { enabled: false },
      dPoP: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      rpInitiatedLogout: signOutFeature(deps),
      userinfo: { enabled: false },
      clientCredentials: { enabled: true },
      revocation: { enabled: true, allowedPolicy: ownTokens },
      deviceFlow: {
        enabled: true,
        userCodeInputSource: (context: Context, _form: string, _out: unknown, error?: { userCode?: string }) =>
          write(
            context,
            deviceCodePage(
              deviceForm(ROUTES.code_verification, error !== undefined, {
                xsrf: context.oidc.session?.state?.secret ?? "",
                code: error ? null : (currentBrowser()?.userCode ?? null),
              }),
              error ? "That code is not known, or has been used already." : null,
            ),
          ),
        userCodeConfirmSource: (context: Context, form: string, client: Client, _info: unknown, code: string) =>
          write(context, deviceConfirmPage(form, client.clientName ?? client.clientId, code)),
        successSource: (context: Context) =>
          write(context, messagePage("You are signed in", "You can close this page and go back to your terminal.")),
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => issuer,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context: Context, resource: string) => resourceServer(issuer, resource, deps),
      },
    },
  };
}

/** A client may revoke only its own tokens. */
const ownTokens = (_context: Context, client: Client, token: Token): boolean => client.clientId === token.clientId;

function write(context: Context, html: string): void {
  for (const [name, value] of Object.entries(pageHeaders())) context.set(name, value);
  context.body = html;
}

/** All addresses of the platform are one resource server with one audience, because one place checks all tokens. */
async function resourceServer(issuer: string, resource: string, { scopes, isWorkloadHost }: OauthDeps) {
  const { protocol, hostname } = new URL(resource);
  const isWorkload = protocol === new URL(issuer).protocol && isWorkloadHost(hostname);
  if (resource !== issuer && !resource.startsWith(`${issuer}/`) && !isWorkload) {
    const { errors } = await import("oidc-provider");
    const { InvalidTarget = Error } = errors;
    throw new InvalidTarget("the resource is not an address of this platform");
  }
  return {
    audience: issuer,
    scope: [...scopes].join(" "),
    accessTokenFormat: "jwt",
    accessTokenTTL: ACCESS_TOKEN_SECONDS,
    jwt: { sign: { alg: SIGNING_ALG } },
  };
}

function claimsOf({ oidc, headers }: Context, token: Token, { keyFor }: OauthDeps): Record<string, unknown> {
  if (token.accountId !== undefined) return { sub_type: "user", grant: token.grantId };
  const { account, workspace } = oidc.client?.metadata() ?? {};
  const form = new URLSearchParams(oidc.body as Record<string, string>);
  const [id, secret] = clientOf(form, headers.authorization);
  const copy = copyOf(keyFor, id, secret);
  return { sub_type: "service_account", account, workspace, ...(copy === null ? {} : { copy }) };
}
