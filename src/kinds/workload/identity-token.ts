/**
 * Tokens by which a workload proves to others who it is: signed by the platform, for one audience, for some minutes. The
 * platform's own API does not take them, since their key is no key of access tokens.
 */
import { createPrivateKey } from "node:crypto";
import { generateSigningPair, IDENTITY_PURPOSE, SIGNING_ALG } from "../../auth/oauth/access-tokens.ts";
import { randomWord } from "../../lib/ids.ts";
import { type Clock, MINUTE_MS, SECOND_MS } from "../../lib/time/clock.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Store } from "../../store/store.ts";

export const IDENTITY_TOKEN_MS = 10 * MINUTE_MS;
/** A token is used again while at least this much of its time is left. */
const LEFT_MIN_MS = 5 * MINUTE_MS;
/** Tokens that are remembered; a full memory is cleared. */
const KNOWN_MAX = 10_000;

interface Parts {
  store: Pick<Store, "signingKeys">;
  clock: Clock;
  /** Known only once the server listens. */
  issuer(): string;
}

type Owner = Pick<Resource, "uid" | "workspace" | "kind" | "name">;

export function createIdentityTokens({ store, clock, issuer }: Parts) {
  const known = new Map<string, { token: Promise<string>; untilMs: number }>();

  async function sign({ uid, workspace, kind, name }: Owner, audience: string): Promise<string> {
    const { SignJWT } = await import("jose"); // loaded with the first token, to save memory
    const key = await store.signingKeys.current(IDENTITY_PURPOSE, generateSigningPair);
    const now = Math.floor(clock.now() / SECOND_MS);
    return new SignJWT({ workspace, workload_kind: kind, workload_name: name, workload_uid: uid })
      .setProtectedHeader({ alg: SIGNING_ALG, typ: "JWT", kid: key.id })
      .setIssuer(issuer())
      .setSubject(`workspace:${workspace}:${kind}:${name}`)
      .setAudience(audience)
      .setJti(randomWord(20))
      .setIssuedAt(now)
      .setExpirationTime(now + IDENTITY_TOKEN_MS / SECOND_MS)
      .sign(createPrivateKey(key.privateKey));
  }

  return async (owner: Owner, audience: string): Promise<string> => {
    // Services that take access tokens of the platform find their keys at the same place.
    if (audience.replace(/\/$/, "") === issuer()) throw new Error("a token for the platform itself is an access token");
    const id = `${owner.uid} ${owner.name} ${audience}`;
    const found = known.get(id);
    if (found && found.untilMs > clock.now()) return found.token;
    if (known.size >= KNOWN_MAX) known.clear();
    const made = { token: sign(owner, audience), untilMs: clock.now() + IDENTITY_TOKEN_MS - LEFT_MIN_MS };
    known.set(id, made);
    made.token.catch(() => known.delete(id)); // the caller gets the error; the next one tries again
    return made.token;
  };
}
