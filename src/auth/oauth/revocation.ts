/**
 * Ends one access token before its time. Such a token is checked by its signature, so what is kept is that it ended,
 * for as long as it would have lived. Refresh tokens and codes are records, which the authorization server ends itself.
 */
import { SECOND_MS } from "../../lib/time/clock.ts";
import { type MachineDeps, verifyMachine } from "../machine-secrets.ts";
import { REVOKED, type TokenClaims, type VerifierDeps } from "./access-tokens.ts";
import { type ClientDeps, findClient } from "./clients.ts";
import { clientOf, OauthError } from "./request.ts";

export interface RevocationDeps extends MachineDeps, ClientDeps, Pick<VerifierDeps, "store" | "clock"> {
  verifyToken(token: string): Promise<TokenClaims | null>;
}

/** False when it is no access token of ours: somebody else knows it, or nobody. */
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
  // Nobody ends the tokens of somebody else.
  if (claims.clientId !== id) throw new OauthError("invalid_request", "The token was given to another program.");
  const leftSeconds = Math.max(1, Math.ceil((claims.expiresAt - clock.now()) / SECOND_MS));
  await store.oauth.put(REVOKED, claims.id, {}, leftSeconds);
  await store.oauth.announceChange();
  return true;
}
