/** Signing in without an API key: the device flow, and renewal of tokens. */
import { setTimeout as pause } from "node:timers/promises";
import { ApiError } from "../client/api-error.ts";
import { UsageError } from "../lib/usage-error.ts";
import { changeProfiles, type Tokens } from "./profiles.ts";

/** The OAuth client id that every server knows for its command line. */
const CLIENT_ID = "berth";
const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";
const TIMEOUT_MS = 30_000;
/** A token is renewed this long before it expires, so that it does not expire during a request. */
const RENEW_BEFORE_MS = 5 * 60_000;
/** Seconds added to the poll interval when the server answers `slow_down`. */
const SLOW_DOWN_S = 5;

interface DeviceCode {
  device_code: string;
  user_code: string;
  verification_uri: string;
  verification_uri_complete?: string;
  expires_in: number;
  interval?: number;
}

interface Answer {
  ok: boolean;
  status: number;
  body: Record<string, unknown>;
}

/** `show` tells the user where to go; then polls until the user has approved. */
export async function deviceSignIn(url: string, show: (code: DeviceCode) => void): Promise<Tokens> {
  const begun = await post(url, "/oauth/device/code", { client_id: CLIENT_ID, scope: "offline_access" });
  if (!begun.ok) throw refused(begun, `${url} does not let people sign in from a terminal`);
  const code = begun.body as unknown as DeviceCode;
  show(code);
  const giveUpAt = Date.now() + code.expires_in * 1000;
  let intervalS = code.interval ?? SLOW_DOWN_S;
  while (Date.now() < giveUpAt) {
    await pause(intervalS * 1000);
    const answer = await post(url, "/oauth/token", {
      client_id: CLIENT_ID,
      grant_type: DEVICE_GRANT,
      device_code: code.device_code,
    });
    if (answer.ok) return tokensOf(answer.body);
    if (answer.body.error === "slow_down") intervalS += SLOW_DOWN_S;
    else if (answer.body.error !== "authorization_pending") throw refused(answer, "the sign-in was not allowed");
  }
  throw new UsageError("nobody has signed in in time.", `start again with \`berth login ${url}\``);
}

/** The access token of a profile, renewed shortly before it expires. */
export async function accessTokenOf(dataDir: string, name: string, url: string, tokens: Tokens): Promise<string> {
  if (isFresh(tokens)) return tokens.accessToken;
  // A refresh token works once: of several commands, one renews under the lock and the others read its result.
  return changeProfiles(dataDir, async ({ current, profiles }) => {
    const profile = profiles[name];
    if (!profile?.tokens) throw signedOut(url);
    if (isFresh(profile.tokens)) return { result: profile.tokens.accessToken };
    const renewed = await post(url, "/oauth/token", {
      client_id: CLIENT_ID,
      grant_type: "refresh_token",
      refresh_token: profile.tokens.refreshToken,
    });
    if (!renewed.ok && renewed.body.error === "invalid_grant") throw signedOut(url);
    if (!renewed.ok) throw refused(renewed, "the sign-in could not be renewed");
    const next = tokensOf(renewed.body);
    return {
      profiles: { current, profiles: { ...profiles, [name]: { ...profile, tokens: next } } },
      result: next.accessToken,
    };
  });
}

/** Ends the sign-in on the server too; false when the server did not answer. */
export async function revoke(url: string, { refreshToken }: Tokens): Promise<boolean> {
  try {
    return (await post(url, "/oauth/revoke", { client_id: CLIENT_ID, token: refreshToken })).ok;
  } catch (error) {
    if (error instanceof ApiError) return false;
    throw error;
  }
}

const isFresh = ({ expiresAt }: Tokens): boolean => Date.now() < expiresAt - RENEW_BEFORE_MS;

const signedOut = (url: string): UsageError =>
  new UsageError(`the sign-in to ${url} has ended.`, `sign in again with \`berth login ${url}\``);

const tokensOf = ({ access_token, refresh_token, expires_in }: Record<string, unknown>): Tokens => ({
  accessToken: String(access_token),
  refreshToken: String(refresh_token),
  expiresAt: Date.now() + Number(expires_in) * 1000,
});

const refused = ({ status, body }: Answer, what: string): ApiError =>
  new ApiError({
    status,
    code: String(body.error ?? "oauth"),
    message: `${what}: ${body.error_description ?? body.error ?? status}`,
  });

async function post(url: string, path: string, body: Record<string, string>): Promise<Answer> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
    redirect: "manual",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch((error: unknown) => {
    throw new ApiError({ status: 0, code: "unreachable", message: `${url} does not answer.`, cause: error });
  });
  const said: unknown = await response.json().catch(() => null);
  const isObject = typeof said === "object" && said !== null;
  return { ok: response.ok, status: response.status, body: isObject ? (said as Record<string, unknown>) : {} };
}
