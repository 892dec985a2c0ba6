/**
 * Tokens that E2B's clients send to a sandbox. A token names the API key that it was made for, and opens one sandbox with
 * that key's rights, for as long as the key is valid; the key itself stays with the client. A caller without an API key,
 * such as a person's own access token, goes on with that.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { GatewayDeps, Principal } from "../../gateway/deps.ts";
import { isSignedWith, type SignedFile } from "./signed-file.ts";

export interface AccessTokenDeps extends Pick<GatewayDeps, "authenticate"> {
  /** A key of this server for one purpose. */
  keyFor(purpose: string): Buffer;
  /** The owner of an API key; null when the key is not, or no longer, valid. */
  principalOfKey(keyId: string): Promise<Principal | null>;
}

export interface AccessTokens {
  /** `credential` is what the caller sent. */
  issue(principal: Principal, credential: string, sandboxUid: string): string;
  /** The owner of a token for this sandbox, or of any other credential. */
  check(token: string, sandboxUid: string): Promise<Principal | null>;
  /** The owner of a token for any sandbox, one that is gone as well, or of any other credential. */
  ownerOf(token: string): Promise<Principal | null>;
  /** The owner of the key, if the address was signed with its token for this sandbox; otherwise null. */
  signerOf(file: SignedFile, sandboxUid: string, keyId: string): Promise<Principal | null>;
}

const PREFIX = "e2b_";
/** The key, the sandbox, and the seal of both. */
const TOKEN = /^e2b_([\w-]+)\.([\w-]+)\.([\w-]{43})$/;
const PURPOSE = "e2b-access-tokens";

export function createAccessTokens({ keyFor, principalOfKey, authenticate }: AccessTokenDeps): AccessTokens {
  const macOf = (keyId: string, sandboxUid: string): string =>
    createHmac("sha256", keyFor(PURPOSE)).update(`${sandboxUid}/${keyId}`).digest("base64url");
  const ownerOf = async (token: string): Promise<Principal | null> => {
    const [, keyId, sandboxUid, mac] = TOKEN.exec(token) ?? [];
    if (keyId === undefined || sandboxUid === undefined || mac === undefined) return authenticate(token);
    const isRight = timingSafeEqual(Buffer.from(mac), Buffer.from(macOf(keyId, sandboxUid)));
    return isRight ? principalOfKey(keyId) : null;
  };
  const tokenOf = (keyId: string, sandboxUid: string): string =>
    `${PREFIX}${keyId}.${sandboxUid}.${macOf(keyId, sandboxUid)}`;
  return {
    issue: ({ keyId }, credential, sandboxUid) => (keyId ? tokenOf(keyId, sandboxUid) : credential),
    signerOf: async (file, sandboxUid, keyId) =>
      isSignedWith(file, tokenOf(keyId, sandboxUid)) ? principalOfKey(keyId) : null,
    check: async (token, sandboxUid) => {
      const named = TOKEN.exec(token)?.[2];
      return named === undefined || named === sandboxUid ? ownerOf(token) : null;
    },
    ownerOf,
  };
}
