/**
 * Revokes an access token. Access tokens are verified by signature, so a record of the revocation is kept until the
 * token would have expired. Refresh tokens and codes are records, which the authorization server removes itself.
 */
import { SECOND_MS } from "../../lib/time/clock.ts";
import { type MachineDeps, verifyMachine } from "../machine-secrets.ts";
import { REVOKED, type TokenClaims, type VerifierDeps } from "./access-tokens.ts";
import { type ClientDeps, findClient } from "./clients.ts";
import { clientOf, OauthError } from "./request.ts";

export interface RevocationDeps extends MachineDeps, ClientDeps, Pick<VerifierDeps, "store" | "clock"> {
  verifyToken(token: string): Promise<TokenClaims | null>;
}

/** Returns false when the text is not an access token of this issuer. */
export async function revokeAccessToken(
  form: URLSearchParams,
  authorization: string | undefined,
  deps: RevocationDeps,
): Promise<boolean> {
  const { store, clock } = deps;
  const claims = await deps.verifyToken(form.get("token") ?? "");
  if (!claims) return false;
  const [id, secret] = clientOf(form, authorization);
  const client = await findClient(deps, id);
  const isOpen = client?.token_endpoint_auth_method === "none";
  if (!client || (!isOpen && !(await verifyMachine(deps, id, secret))))
    throw new OauthError("invalid_client", "Authenticate as the program that the token was given to.", 401);
  // A client may revoke only its own tokens.
  if (claims.clientId !== id) throw new OauthError("invalid_request", "The token was given to another program.");
  const leftSeconds = Math.max(1, Math.ceil((claims.expiresAt - clock.now()) / SECOND_MS));
  await store.oauth.put(REVOKED, claims.id, {}, leftSeconds);
  await store.oauth.announceChange();
  return true;
}
