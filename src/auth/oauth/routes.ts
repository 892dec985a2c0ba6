/** Paths of the authorization server below the issuer; the same ones work below `/v0`. */
export const ROUTES = {
  token: "/oauth/token",
  jwks: "/oauth/jwks",
  authorization: "/oauth/authorize",
  revocation: "/oauth/revoke",
  device_authorization: "/oauth/device/code",
  code_verification: "/oauth/device",
  end_session: "/oauth/sign-out",
} as const;
/** Ours, as tokens are checked here and not by looking them up. */
export const INTROSPECTION = "/oauth/introspect";
/** Ours, as anybody may come. */
export const REGISTRATION = "/oauth/register";
