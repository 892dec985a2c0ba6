/** The access token of a console: a few minutes long, kept in the memory of the page and nowhere else. */
import { createPrivateKey } from "node:crypto";
import { randomSecret } from "../../lib/ids.ts";
import { MINUTE_MS, SECOND_MS } from "../../lib/time/clock.ts";
import { ALL_SCOPES, generateSigningPair, SIGNING_ALG, SIGNING_PURPOSE } from "../oauth/access-tokens.ts";
import { ownClientId } from "../oauth/own-client.ts";
import type { ConsoleDeps } from "./console-link.ts";
import type { ConsoleSession } from "./console-session.ts";

export const CONSOLE_TOKEN_SECONDS = (10 * MINUTE_MS) / SECOND_MS;

export async function issueConsoleToken(
  { store, clock }: ConsoleDeps,
  { issuer, brand }: { issuer: string; brand: string },
  { sub, grantId }: ConsoleSession,
): Promise<string> {
  const { SignJWT } = await import("jose"); // loaded with the first token, to save memory
  const key = await store.signingKeys.current(SIGNING_PURPOSE, generateSigningPair);
  const now = Math.floor(clock.now() / SECOND_MS);
  return new SignJWT({ sub_type: "user", client_id: ownClientId(brand), scope: ALL_SCOPES, grant: grantId })
    .setProtectedHeader({ alg: SIGNING_ALG, typ: "at+jwt", kid: key.id })
    .setIssuer(issuer)
    .setAudience(issuer)
    .setSubject(sub)
    .setJti(randomSecret())
    .setIssuedAt(now)
    .setExpirationTime(now + CONSOLE_TOKEN_SECONDS)
    .sign(createPrivateKey(key.privateKey));
}
