/**
 * An external authorization server that people may sign in with: its metadata, and its claims about a person who has
 * just signed in there. Nothing it sends is trusted before its signature and claims are checked.
 */
import type { JSONWebKeySet, JWTPayload } from "jose";
import { type Outbound, OutboundError } from "../../lib/network/outbound-http.ts";
import { type Clock, HOUR_MS, MINUTE_MS } from "../../lib/time/clock.ts";
import { isRecord, itemsOf } from "../../lib/untrusted-json.ts";

export interface IdentityProviderSettings {
  /** The provider's id in URLs. */
  id: string;
  /** The provider's display name. */
  name: string;
  issuer: string;
  client_id: string;
  client_secret?: string | undefined;
  scopes: string;
  groups_claim: string;
  /** Accepted domains of email addresses; empty = all. */
  domains: readonly string[];
  /** Whether an unknown person is added to the account. */
  create_users: boolean;
}

/** The verified claims about a person who has signed in at the provider. */
export interface ExternalPerson {
  issuer: string;
  subject: string;
  /** Null unless the provider has verified the address. */
  email: string | null;
  givenName: string;
  familyName: string;
  groups: ReadonlySet<string>;
}

/** An invalid answer of a provider; the message is for the log. */
export class ExternalError extends Error {}

const ANSWER_BYTES_MAX = 1024 * 1024;
const TIMEOUT_MS = 10_000;
const METADATA_KEPT_MS = HOUR_MS;
/** A token with an unknown key id makes the server fetch the provider's keys again, at most this often. */
const KEYS_LOOK_MS = MINUTE_MS;
const CLOCK_TOLERANCE_S = 60;
/** Public-key signatures only: with a shared secret the client itself could make tokens. */
const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];
const TEXT_MAX = 255;
const GROUPS_MAX = 1000;

interface Metadata {
  authorization_endpoint: string;
  token_endpoint: string;
  jwks_uri: string;
  userinfo_endpoint: string | null;
}

export interface Challenge {
  state: string;
  nonce: string;
  codeChallenge: string;
  redirectUri: string;
}

export interface Redemption {
  code: string;
  codeVerifier: string;
  nonce: string;
  redirectUri: string;
}

export type IdentityProvider = ReturnType<typeof createIdentityProvider>;

export interface IdentityProviderDeps {
  clock: Clock;
  /** Allows private addresses: the operator chose the provider, often one in their own network. */
  outbound: Outbound;
}

export function createIdentityProvider(settings: IdentityProviderSettings, { clock, outbound }: IdentityProviderDeps) {
  const { issuer, client_id: clientId } = settings;
  let metadata: { value: Metadata; readAt: number } | null = null;
  let keys: { value: JSONWebKeySet; readAt: number } | null = null;

  async function discover(): Promise<Metadata> {
    if (metadata && clock.now() - metadata.readAt < METADATA_KEPT_MS) return metadata.value;
    const said = await fetchJson(outbound, `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
    if (said.issuer !== issuer) throw new ExternalError(`it calls itself ${String(said.issuer).slice(0, TEXT_MAX)}`);
    const endpoint = (name: string): string => {
      const address = said[name];
      if (typeof address !== "string" || !isSafe(address, issuer)) throw new ExternalError(`its ${name} is not safe`);
      return address;
    };
    const value = {
      authorization_endpoint: endpoint("authorization_endpoint"),
      token_endpoint: endpoint("token_endpoint"),
      jwks_uri: endpoint("jwks_uri"),
      userinfo_endpoint: said.userinfo_endpoint === undefined ? null : endpoint("userinfo_endpoint"),
    };
    metadata = { value, readAt: clock.now() };
    return value;
  }

  async function verify(idToken: string, nonce: string, { jwks_uri }: Metadata): Promise<JWTPayload> {
    const { createLocalJWKSet, jwtVerify, errors } = await import("jose");
    const check = async (): Promise<JWTPayload> => {
      keys ??= { value: (await fetchJson(outbound, jwks_uri)) as unknown as JSONWebKeySet, readAt: clock.now() };
      const { payload } = await jwtVerify(idToken, createLocalJWKSet(keys.value), {
        issuer,
        audience: clientId,
        algorithms: ALGORITHMS,
        requiredClaims: ["sub", "iat", "exp"],
        clockTolerance: CLOCK_TOLERANCE_S,
        currentDate: new Date(clock.now()),
      });
      return payload;
    };
    const payload = await check().catch((error: unknown) => {
      const isNewKey = error instanceof errors.JWKSNoMatchingKey;
      if (!isNewKey || clock.now() - (keys?.readAt ?? 0) < KEYS_LOOK_MS) throw error;
      keys = null;
      return check();
    });
    if (payload.nonce !== nonce) throw new ExternalError("its token is for another sign-in");
    if (Array.isArray(payload.aud) && payload.aud.length > 1 && payload.azp !== clientId)
      throw new ExternalError("its token is for somebody else too");
    return payload;
  }

  return {
    settings,

    async authorizationUrl({ state, nonce, codeChallenge, redirectUri }: Challenge): Promise<string> {
      const url = new URL((await discover()).authorization_endpoint);
      const asked = {
        response_type: "code",
        client_id: clientId,
        redirect_uri: redirectUri,
        scope: settings.scopes,
        state,
        nonce,
        code_challenge: codeChallenge,
        code_challenge_method: "S256",
      };
      for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value);
      return url.href;
    },

    async redeem({ code, codeVerifier, nonce, redirectUri }: Redemption): Promise<ExternalPerson> {
      const known = await discover();
      const { client_secret: secret } = settings;
      const answer = await fetchJson(outbound, known.token_endpoint, {
        method: "POST",
        headers: {
          "content-type": "application/x-www-form-urlencoded",
          ...(secret === undefined ? {} : { authorization: basic(clientId, secret) }),
        },
        body: new URLSearchParams({
          grant_type: "authorization_code",
          code,
          redirect_uri: redirectUri,
          code_verifier: codeVerifier,
          ...(secret === undefined ? { client_id: clientId } : {}),
        }).toString(),
      });
      if (typeof answer.id_token !== "string") throw new ExternalError("it sent no token");
      const claims = await verify(answer.id_token, nonce, known).catch((error: unknown) => {
        throw error instanceof ExternalError ? error : new ExternalError("its token is not good", { cause: error });
      });
      return personFrom({ ...(await moreClaims(outbound, known, claims, answer.access_token)), ...claims }, settings);
    },
  };
}

/** Fetches the userinfo endpoint: many providers return the email address and groups only there. */
async function moreClaims(
  outbound: Outbound,
  { userinfo_endpoint }: Metadata,
  claims: JWTPayload,
  accessToken: unknown,
): Promise<object> {
  if (userinfo_endpoint === null || typeof accessToken !== "string") return {};
  const said = await fetchJson(outbound, userinfo_endpoint, { headers: { authorization: `Bearer ${accessToken}` } });
  if (said.sub !== claims.sub) throw new ExternalError("it told about somebody else");
  return said;
}

function personFrom(
  claims: Record<string, unknown>,
  { issuer, groups_claim }: IdentityProviderSettings,
): ExternalPerson {
  const { sub, email, email_verified, given_name, family_name } = claims;
  if (typeof sub !== "string" || sub === "" || sub.length > TEXT_MAX) throw new ExternalError("its subject is no name");
  const isVerified = typeof email === "string" && email_verified === true && /^[^\s@]+@[^\s@]+$/.test(email);
  const groups = [claims[groups_claim] ?? []].flat().slice(0, GROUPS_MAX);
  return {
    issuer,
    subject: sub,
    email: isVerified && email.length <= TEXT_MAX ? email.toLowerCase() : null,
    givenName: textOf(given_name),
    familyName: textOf(family_name),
    groups: new Set(itemsOf(groups).filter((group): group is string => typeof group === "string")),
  };
}

const textOf = (value: unknown): string => (typeof value === "string" ? value.slice(0, TEXT_MAX) : "");

/** RFC 6749 requires each half to be URL-encoded before they are joined. */
const basic = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString("base64")}`;

/** True for TLS, or for the origin of the issuer that the operator configured. */
const isSafe = (address: string, issuer: string): boolean =>
  URL.canParse(address) && (address.startsWith("https://") || new URL(address).origin === new URL(issuer).origin);

interface Sent {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

async function fetchJson(outbound: Outbound, url: string, sent: Sent = {}): Promise<Record<string, unknown>> {
  const answer = await outbound
    .request(url, {
      method: sent.method ?? "GET",
      headers: { accept: "application/json", ...sent.headers },
      ...(sent.body === undefined ? {} : { body: sent.body }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
      bytesMax: ANSWER_BYTES_MAX,
    })
    .catch((error: unknown) => {
      if (!(error instanceof OutboundError)) throw error;
      throw new ExternalError(error.message, { cause: error });
    });
  let said: unknown = null;
  try {
    said = JSON.parse(answer.text);
  } catch {
    // Invalid JSON is refused below, like any other value that is not an object.
  }
  const isOk = answer.status >= 200 && answer.status < 300;
  if (!isOk || !isRecord(said))
    throw new ExternalError(`${url} answered ${answer.status} ${isRecord(said) ? textOf(said.error) : ""}`);
  return said;
}
