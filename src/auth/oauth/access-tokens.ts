/**
 * Access tokens: short-lived JWTs of the platform's own issuer. The signature proves who requested the token; whether
 * that subject still exists, and what it may do, is looked up as for an API key.
 */
import { generateKeyPairSync } from "node:crypto";
import type { CryptoKey, JWK, KeyObject } from "jose";
import { randomWord } from "../../lib/ids.ts";
import { type Clock, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../lib/time/clock.ts";
import type { KeyPair } from "../../store/people/signing-keys.ts";
import type { Store } from "../../store/store.ts";

/** Lifetime of an access token: clients of such platforms expect two hours and renew a token at half of it. */
export const ACCESS_TOKEN_SECONDS = (2 * HOUR_MS) / SECOND_MS;
/** Model name of the records of revoked access tokens. */
export const REVOKED = "RevokedToken";
export const SIGNING_PURPOSE = "oauth";
/** Keys of tokens by which workloads prove their identity to others. The platform takes no token of these keys. */
export const IDENTITY_PURPOSE = "workload-identity";
export const SIGNING_ALG = "ES256";
/** The scope that stands for all scopes; a token requested without scopes has it. */
export const ALL_SCOPES = "admin";
/** How long public keys are cached, and so how soon a key removed from the database is forgotten. */
const KEYS_KEPT_MS = 10 * MINUTE_MS;

export interface TokenClaims {
  /** The token's id, by which it alone can be revoked. */
  id: string;
  /** The OAuth client that the token was issued to. */
  clientId: string;
  subjectType: "user" | "service_account";
  subject: string;
  /** null = every scope that the role allows. */
  scopes: ReadonlySet<string> | null;
  /** The consent of a person's token; the token is invalid without it. */
  grantId: string | null;
  /** The workload replica that the token was issued to. */
  copy: string | null;
  expiresAt: number;
}

export interface VerifierDeps {
  store: Store;
  clock: Clock;
  /** Known only once the server listens. */
  issuer(): string;
}

export function createTokenVerifier({ store, clock, issuer }: VerifierDeps) {
  let keys = new Map<string, CryptoKey | KeyObject | Uint8Array>();
  let readAt = Number.NEGATIVE_INFINITY;

  async function keyNamed(kid: string | undefined) {
    // An unknown key id costs one read, no more than an unknown API key.
    if (clock.now() - readAt > KEYS_KEPT_MS || !keys.has(kid ?? "")) {
      const { importJWK } = await import("jose");
      readAt = clock.now();
      const known = (await store.signingKeys.publicKeys(SIGNING_PURPOSE)).map((text) => JSON.parse(text) as JWK);
      keys = new Map(
        await Promise.all(known.map(async (jwk) => [jwk.kid ?? "", await importJWK(jwk, SIGNING_ALG)] as const)),
      );
    }
    const key = keys.get(kid ?? "");
    if (!key) throw new Error("the token names a key that is not ours");
    return key;
  }

  return async function verifyToken(token: string, { orExpired = false } = {}): Promise<TokenClaims | null> {
    if (!/^eyJ[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return null;
    try {
      const { jwtVerify } = await import("jose"); // loaded with the first token, to save memory
      const { payload } = await jwtVerify(token, ({ kid }) => keyNamed(kid), {
        algorithms: [SIGNING_ALG],
        typ: "at+jwt",
        issuer: issuer(),
        audience: issuer(),
        requiredClaims: ["sub", "iat", "exp", "jti"],
        currentDate: new Date(orExpired ? 0 : clock.now()),
      });
      const asked = new Set(typeof payload.scope === "string" ? payload.scope.split(" ") : []);
      return {
        id: payload.jti ?? "",
        clientId: String(payload.client_id ?? ""),
        subjectType: payload.sub_type === "user" ? "user" : "service_account",
        subject: payload.sub ?? "",
        scopes: asked.has(ALL_SCOPES) ? null : asked,
        grantId: typeof payload.grant === "string" ? payload.grant : null,
        copy: typeof payload.copy === "string" ? payload.copy : null,
        expiresAt: (payload.exp ?? 0) * SECOND_MS,
      };
    } catch {
      return null; // any error means that it is not a valid token of this issuer
    }
  };
}

export function generateSigningPair(): KeyPair {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const id = randomWord(16);
  return {
    id,
    publicKey: JSON.stringify({ ...publicKey.export({ format: "jwk" }), kid: id, alg: SIGNING_ALG, use: "sig" }),
    privateKey: privateKey.export({ type: "pkcs8", format: "pem" }) as string,
  };
}
