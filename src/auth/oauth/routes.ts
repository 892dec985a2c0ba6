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
/** Handled by the platform, because access tokens are verified by signature and not looked up. */
export const INTROSPECTION = "/oauth/introspect";
/** Handled by the platform, because anybody may register. */
export const REGISTRATION = "/oauth/register";
