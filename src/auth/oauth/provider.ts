/**
 * The authorization server: oidc-provider with our own store, clients and people. It is loaded at the first OAuth
 * request, as most servers on a laptop never see one, and made again when the signing key is replaced.
 */
import { createPrivateKey } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type Provider from "oidc-provider";
import type { Client, Context, Token } from "oidc-provider";
import { type Clock, MINUTE_MS } from "../../lib/clock.ts";
import type { KeyPair } from "../../store/signing-keys.ts";
import type { Store } from "../../store/store.ts";
import { ACCESS_TOKEN_SECONDS, generateSigningPair, SIGNING_ALG, SIGNING_PURPOSE } from "./access-tokens.ts";
import { createAdapter } from "./adapter.ts";
import { compareSecret } from "./clients.ts";

/** A replaced key is taken up this soon by every instance. */
const KEY_LOOK_MS = MINUTE_MS;

export interface OauthDeps {
  store: Store;
  clock: Clock;
  log: { warn(fields: object, message: string): void };
  /** Known only once the server listens. */
  issuer(): string;
  scopes: ReadonlySet<string>;
  trustProxy: boolean;
  keyFor(purpose: string): Buffer;
}

export type Handle = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** Paths below the issuer; the same ones work below `/v0`. */
export const ROUTES = {
  token: "/oauth/token",
  jwks: "/oauth/jwks",
  authorization: "/oauth/authorize",
} as const;

/** Gives the server that signs with the current key. */
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
  provider.proxy = deps.trustProxy;
  provider.on("server_error", (_context, error) => deps.log.warn({ err: error }, "an OAuth request failed"));
  Object.assign(provider.Client.prototype, {
    compareClientSecret(this: Client, secret: string) {
      return compareSecret(deps.store, this.clientId, secret);
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
    adapter: createAdapter(deps.store),
    jwks: { keys: [signingKey] },
    routes: ROUTES,
    scopes: [...deps.scopes],
    clientDefaults: { id_token_signed_response_alg: SIGNING_ALG },
    enabledJWA: { idTokenSigningAlgValues: [SIGNING_ALG] },
    extraClientMetadata: { properties: ["workspace", "account"] },
    clientBasedCORS: () => false,
    renderError: (context: Context, out: Record<string, string>) => {
      context.type = "json";
      context.body = out;
    },
    ttl: { ClientCredentials: ACCESS_TOKEN_SECONDS, AccessToken: ACCESS_TOKEN_SECONDS },
    extraTokenClaims: (context: Context, token: Token) => claimsOf(context, token),
    features: {
      devInteractions: { enabled: false },
      dPoP: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      userinfo: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => issuer,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context: Context, resource: string) => resourceServer(issuer, resource, deps.scopes),
      },
    },
  };
}

/** Every address of the platform is one resource server with one audience: all check tokens in the same place. */
async function resourceServer(issuer: string, resource: string, scopes: ReadonlySet<string>) {
  if (resource !== issuer && !resource.startsWith(`${issuer}/`)) {
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

function claimsOf({ oidc: { client } }: Context, token: Token): Record<string, unknown> {
  const { account, workspace } = client?.metadata() ?? {};
  return token.accountId === undefined
    ? { sub_type: "service_account", account, workspace }
    : { sub_type: "user", grant: token.grantId };
}
