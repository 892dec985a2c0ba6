/** Who is calling. */

export interface Credential {
  /** A valid key or token; null: no credentials. `refused` is a token that the server did not accept: another one is needed. */
  bearer(refused?: string | null): Promise<string | null>;
}

/** A key that never changes, or a function that knows the newest. */
export const keyCredential = (key: string | (() => string | Promise<string>)): Credential => ({
  bearer: async () => (typeof key === "function" ? key() : key),
});

export interface Token {
  text: string;
  expiresAtMs: number;
  issuedAtMs: number;
}

/** A token is renewed this long before it ends, or at half of its life when that is later. */
const RENEW_BEFORE_MS = 5 * 60_000;

export const isFresh = ({ expiresAtMs, issuedAtMs }: Token, nowMs: number): boolean =>
  nowMs < expiresAtMs - Math.min(RENEW_BEFORE_MS, (expiresAtMs - issuedAtMs) / 2);

/** A token that is renewed before it ends. Calls of one moment share one renewal. */
export function renewedCredential(renew: () => Promise<Token>): Credential {
  let token: Token | null = null;
  let renewing: Promise<Token> | null = null;
  return {
    async bearer(refused) {
      if (token && token.text !== refused && isFresh(token, Date.now())) return token.text;
      renewing ??= renew().finally(() => {
        renewing = null;
      });
      token = await renewing;
      return token.text;
    },
  };
}
