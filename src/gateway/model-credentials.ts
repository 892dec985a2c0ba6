/** The caller of a model API. Clients of every provider put their key somewhere else. */
import { GatewayError } from "../contract/gateway-errors.ts";
import type { Downstream } from "../http/downstream.ts";
import { brandWords } from "../http/header-rules.ts";
import { offeredBearer, PROTOCOL_FIELD } from "../http/own-protocols.ts";
import { queryValue } from "./credentials.ts";
import type { Challenge, GatewayDeps, Principal } from "./deps.ts";

/** Where the official clients of the providers send what they were given as an API key. */
const KEY_HEADERS = ["x-api-key", "x-goog-api-key", "api-key"];

/** The subprotocol in which OpenAI's client for browsers offers the key. */
const KEY_PROTOCOL = "openai-insecure-api-key.";

const INVALID_TOKEN = ', error="invalid_token"';

export interface KnownCaller {
  principal: Principal;
  /** Rejects when the same credentials may not call models of the workspace any more. */
  recheck(workspace: string): Promise<void>;
}

export type FindCaller = (down: Downstream, challenge: Challenge) => Promise<KnownCaller>;

/** Finds out who calls; rejects with a GatewayError for callers without credentials, or with wrong ones. */
export function modelCaller(
  { authenticate, authorize }: Pick<GatewayDeps, "authenticate" | "authorize">,
  brand: string,
): FindCaller {
  const words = brandWords(brand);
  const bearerHeaders = [...words.map((word) => `x-${word}-authorization`), "authorization"];
  return async (down, challenge) => {
    const token = tokenOf(down, bearerHeaders) ?? (down.upgrade === null ? null : offeredToken(down, words));
    if (token === null) throw new GatewayError("AUTHENTICATION_REQUIRED", undefined, challenge());
    const refusal = challenge(INVALID_TOKEN);
    const find = async (): Promise<Principal> => {
      const found = await authenticate(token);
      if (!found) throw new GatewayError("AUTHENTICATION_FAILED", undefined, refusal);
      return found;
    };
    return {
      principal: await find(),
      async recheck(workspace) {
        if (!(await authorize(await find(), { workspace, kind: "model" }))) throw new GatewayError("FORBIDDEN");
      },
    };
  };
}

const BEARER = /^bearer +(\S+)$/i;

function tokenOf(down: Downstream, bearerHeaders: readonly string[]): string | null {
  for (const name of bearerHeaders) {
    const given = down.header(name);
    const bearer = given === undefined ? undefined : BEARER.exec(given)?.[1];
    if (bearer) return bearer;
  }
  for (const name of KEY_HEADERS) {
    const key = down.header(name);
    if (key) return key;
  }
  return null;
}

/** Browsers set no headers of a WebSocket: the key is in a subprotocol, or in the query. */
function offeredToken(down: Downstream, words: readonly string[]): string | null {
  const offered = down.header(PROTOCOL_FIELD);
  const key = offered
    ?.split(",")
    .map((protocol) => protocol.trim())
    .find((protocol) => protocol.startsWith(KEY_PROTOCOL));
  return key?.slice(KEY_PROTOCOL.length) ?? offeredBearer(offered, words) ?? queryValue(down.url, "token");
}

/** The caller as the usage ledger knows it. */
export const subjectOf = ({ id, type, keyId }: Principal): { id: string; type: string } =>
  keyId ? { id: keyId, type: "api_key" } : { id, type };
