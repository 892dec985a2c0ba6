/** Tells a service account whether a token is good, for as far as the token's owner belongs to its workspace. */
import { PlatformError } from "../../contract/errors.ts";
import { type Authenticator, credentialOf } from "../authenticator.ts";
import { type MachineDeps, verifyMachine } from "../machine-secrets.ts";
import { clientOf, OauthError } from "./request.ts";

export interface IntrospectionDeps extends MachineDeps {
  authenticator: Authenticator;
}

export async function introspect(
  form: URLSearchParams,
  authorization: string | undefined,
  { authenticator, ...machines }: IntrospectionDeps,
): Promise<Record<string, unknown>> {
  const [id, secret] = clientOf(form, authorization);
  const asking = await verifyMachine(machines, id, secret);
  if (!asking) throw new OauthError("invalid_client", "Authenticate as a service account.", 401);
  const token = form.get("token");
  if (!token) throw new OauthError("invalid_request", "'token' is missing.");
  try {
    const caller = await authenticator.authenticate(credentialOf(token));
    const belongs = await authenticator.membershipIn(caller, asking.workspace);
    if (caller.authMethod !== "jwt" || !belongs) return { active: false };
  } catch (error) {
    if (error instanceof PlatformError && error.code === "unauthenticated") return { active: false };
    throw error;
  }
  const { decodeJwt } = await import("jose");
  const { iss, aud, sub, iat, exp, jti, scope, client_id } = decodeJwt(token);
  return { active: true, token_type: "Bearer", iss, aud, sub, iat, exp, jti, scope, client_id };
}
