/** The token endpoint of a server. */
import { BerthError, errorOf } from "../core/errors.ts";
import type { Token } from "./credential.ts";

const TIMEOUT_MS = 30_000;

export interface Granted extends Token {
  refreshToken: string | null;
}

export async function requestToken(
  url: string,
  grant: Record<string, string>,
  { fetch, basic }: { fetch: typeof globalThis.fetch; basic?: string },
): Promise<Granted> {
  const issuedAtMs = Date.now();
  const response = await fetch(`${url}/oauth/token`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(basic ? { authorization: `Basic ${basic}` } : {}) },
    body: JSON.stringify(grant),
    redirect: "manual",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch((error: unknown) => {
    throw new BerthError({
      code: "unreachable",
      message: `${url} does not give a token.`,
      retryable: true,
      cause: error,
    });
  });
  const text = await response.text();
  if (!response.ok) throw errorOf(response.status, response.headers, text);
  const { access_token, refresh_token, expires_in } = JSON.parse(text) as {
    access_token: string;
    refresh_token?: string;
    expires_in: number;
  };
  return {
    text: access_token,
    refreshToken: refresh_token ?? null,
    issuedAtMs,
    expiresAtMs: issuedAtMs + expires_in * 1000,
  };
}
