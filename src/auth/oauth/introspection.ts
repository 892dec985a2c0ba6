/**
 * Tells a service account whether a token is valid, if the token's owner or drive belongs to the account's workspace.
 */
import { PlatformError } from "../../contract/errors.ts";
import { type Authenticator, credentialOf } from "../authenticator.ts";
import { type MachineDeps, verifyMachine } from "../machine-secrets.ts";
import { machineScopes } from "./machine-scopes.ts";
import { clientOf, OauthError } from "./request.ts";

export interface IntrospectionDeps extends MachineDeps {
  /** The claims of a valid drive token; null for other tokens. */
  checkDriveToken(token: string): Promise<{ workspace: string } | null>;
  memberScopes: ReadonlySet<string>;
  authenticator: Authenticator;
}

export async function introspect(
  form: URLSearchParams,
  authorization: string | undefined,
  { authenticator, memberScopes, checkDriveToken, ...machines }: IntrospectionDeps,
): Promise<Record<string, unknown>> {
  const [id, secret] = clientOf(form, authorization);
  const asking = await verifyMachine(machines, id, secret);
  if (!asking) throw new OauthError("invalid_client", "Authenticate as a service account.", 401);
  const token = form.get("token");
  if (!token) throw new OauthError("invalid_request", "'token' is missing.");
  let scopes: readonly string[] | null = null;
  try {
    const caller = await authenticator.authenticate(credentialOf(token));
    const belongs = await authenticator.membershipIn(caller, asking.workspace);
    if (caller.authMethod !== "jwt" || !belongs) return { active: false };
    if (caller.bound) scopes = machineScopes(caller.bound.role, caller.scopes, memberScopes);
  } catch (error) {
    if (!(error instanceof PlatformError && error.code === "unauthenticated")) throw error;
    const claims = await checkDriveToken(token);
    return claims?.workspace === asking.workspace
      ? { active: true, token_type: "Bearer", ...claims }
      : { active: false };
  }
  const { decodeJwt } = await import("jose");
  const { iss, aud, sub, iat, exp, jti, scope, client_id } = decodeJwt(token);
  const held = scopes === null ? scope : scopes.join(" ");
  return { active: true, token_type: "Bearer", iss, aud, sub, iat, exp, jti, scope: held, client_id };
}
