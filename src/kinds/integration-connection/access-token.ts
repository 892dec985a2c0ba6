/**
 * Access tokens of connections that hold a refresh token. One server, the holder of a lease, exchanges the refresh
 * token; the other servers read the result from the store. When the service replaces the refresh token, the new one is
 * stored, sealed, before the access token is used, because the old one no longer works.
 */
import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { PlatformError } from "../../contract/errors.ts";
import { randomWord } from "../../lib/ids.ts";
import { OutboundError } from "../../lib/network/outbound-http.ts";
import { SECOND_MS } from "../../lib/time/clock.ts";
import { isRecord } from "../../lib/untrusted-json.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { CONNECTION_TOKENS } from "../../store/sealing/sealed-columns.ts";
import type { Platform } from "../port.ts";

export interface Secrets {
  CLIENT_ID?: string;
  CLIENT_SECRET?: string;
  REFRESH_TOKEN?: string;
  [more: string]: string | undefined;
}

interface Token {
  accessToken: string;
  expiresAt: number;
}

/** An access token, stored with a hash of the refresh token that it belongs to. */
interface KeptToken extends Token {
  /** SHA-256 hash, not the token. */
  refreshToken: string;
}

/** A token is renewed this long before it expires, so that it does not expire during a call. */
const SPARE_MS = 60 * SECOND_MS;
/** Assumed token lifetime where the service does not state one. */
const LIFETIME_DEFAULT_MS = 300 * SECOND_MS;
const EXCHANGE_MS = 20 * SECOND_MS;
/** Longer than an exchange, so that no other server takes the lease during one. */
const LEASE_MS = EXCHANGE_MS + 10 * SECOND_MS;
const LOOK_MS = 100;
const ANSWER_BYTES_MAX = 256 * 1024;
const REFRESH_TOKEN = "/spec/secret/REFRESH_TOKEN";

export type AccessTokens = ReturnType<typeof createAccessTokens>;

export function createAccessTokens(deps: Platform) {
  const { store, clock } = deps;
  const holder = randomWord(12);
  const under = new Map<string, Promise<string>>();

  /** `stale`: a token that the service refused before its expiry. */
  async function get(connection: Resource, tokenUrl: string, stale?: string): Promise<string> {
    const kept = await read(connection);
    if (kept !== null && kept !== stale) return kept;
    const going = under.get(connection.uid);
    if (going) return going;
    const started = exchangeOnce(connection, tokenUrl, stale).finally(() => under.delete(connection.uid));
    under.set(connection.uid, started);
    return started;
  }

  async function exchangeOnce(connection: Resource, tokenUrl: string, stale?: string): Promise<string> {
    const giveUp = clock.now() + LEASE_MS;
    for (;;) {
      const lease = await store.leases.acquire(`connection-token/${connection.uid}`, holder, LEASE_MS);
      try {
        // Read again: another server may have made the exchange, and replaced the refresh token.
        const current = await store.resources.getByUid(connection.workspace, connection.uid);
        if (!current || current.deletedAt !== null) throw new PlatformError("not_found", "The connection is gone.");
        const kept = await read(current);
        if (kept !== null && kept !== stale) return kept;
        if (lease) return await exchange(current, tokenUrl);
      } finally {
        if (lease) await store.leases.release(lease);
      }
      if (clock.now() > giveUp)
        throw new PlatformError("timeout", "Another server is still refreshing the access token.");
      await pause(LOOK_MS);
    }
  }

  async function exchange(current: Resource, tokenUrl: string): Promise<string> {
    const { workspace, uid } = current;
    const secrets = secretsOf(current, deps);
    const { refreshToken, ...token } = await ask(tokenUrl, secrets, deps).catch(async (error: unknown) => {
      if (error instanceof PlatformError && error.code === "unprocessable") await tell(current, error.message);
      throw error;
    });
    const isSame = (now: Resource): boolean => secretsOf(now, deps).REFRESH_TOKEN === secrets.REFRESH_TOKEN;
    const stored = await store.resources.update(workspace, uid, (now) =>
      // The owner may have set a new refresh token meanwhile; the owner's token is kept.
      refreshToken !== null && isSame(now)
        ? { secrets: { ...store.resources.secretsOf(now), [REFRESH_TOKEN]: refreshToken } }
        : null,
    );
    const kept: KeptToken = { ...token, refreshToken: refreshHash(stored ?? current, deps) };
    await store.records.update(recordKey(uid), token.expiresAt, () => ({
      value: store.keyring.seal(JSON.stringify(kept), recordKey(uid)),
      result: undefined,
    }));
    return token.accessToken;
  }

  /** The stored access token, or null when it is expired or belongs to another refresh token. */
  async function read(connection: Resource): Promise<string | null> {
    const sealed = await store.records.read(recordKey(connection.uid));
    const token = sealed === null ? null : opened(sealed, recordKey(connection.uid));
    if (token?.refreshToken !== refreshHash(connection, deps)) return null;
    return token.expiresAt - SPARE_MS > clock.now() ? token.accessToken : null;
  }

  /** Returns null for a token stored by version 0.1.0, which was sealed in another way. */
  function opened(sealed: string, context: string): KeptToken | null {
    try {
      return JSON.parse(store.keyring.open(sealed, context)) as KeptToken;
    } catch {
      return null;
    }
  }

  /** Records an event unless the last event has the same message: a busy agent would otherwise fill the event list. */
  async function tell({ workspace, uid }: Resource, message: string): Promise<void> {
    await store.resources.update(workspace, uid, (now) =>
      now.events.at(-1)?.message === message ? null : { event: { type: "refresh_failed", message } },
    );
  }

  return { get };
}

export function secretsOf(connection: Resource, { store }: Pick<Platform, "store">): Secrets {
  const prefix = "/spec/secret/";
  return Object.fromEntries(
    Object.entries(store.resources.secretsOf(connection)).map(([key, value]) => [key.slice(prefix.length), value]),
  );
}

interface Exchanged extends Token {
  refreshToken: string | null;
}

async function ask(tokenUrl: string, secrets: Secrets, { outbound, clock }: Platform): Promise<Exchanged> {
  const { CLIENT_ID, CLIENT_SECRET, REFRESH_TOKEN: refresh } = secrets;
  if (!refresh || !CLIENT_ID) throw refused("the connection holds no REFRESH_TOKEN or no CLIENT_ID");
  const form = new URLSearchParams({ grant_type: "refresh_token", refresh_token: refresh, client_id: CLIENT_ID });
  if (CLIENT_SECRET) form.set("client_secret", CLIENT_SECRET);
  const answer = await outbound
    .request(tokenUrl, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
      body: form.toString(),
      signal: AbortSignal.timeout(EXCHANGE_MS),
      bytesMax: ANSWER_BYTES_MAX,
    })
    .catch((error: unknown) => {
      const why = error instanceof OutboundError ? error.message : "it failed";
      throw new PlatformError("bad_gateway", `The access token could not be refreshed: ${why}`, { cause: error });
    });
  const body = jsonOf(answer.text);
  if (answer.status >= 500)
    throw new PlatformError("bad_gateway", `The access token could not be refreshed: status ${answer.status}.`);
  if (answer.status !== 200 || typeof body.access_token !== "string")
    throw refused(typeof body.error === "string" ? body.error.slice(0, 100) : `status ${answer.status}`);
  const seconds = Number(body.expires_in);
  const lifetimeMs = Number.isFinite(seconds) && seconds > 0 ? seconds * SECOND_MS : LIFETIME_DEFAULT_MS;
  const replaced = typeof body.refresh_token === "string" && body.refresh_token !== refresh;
  return {
    accessToken: body.access_token,
    // A lifetime below SPARE_MS would cause an exchange with every call.
    expiresAt: clock.now() + Math.max(lifetimeMs, SPARE_MS + SECOND_MS),
    refreshToken: replaced ? (body.refresh_token as string) : null,
  };
}

const refused = (why: string): PlatformError =>
  new PlatformError("unprocessable", `The refresh token is refused (${why}): connect the account again.`);

function jsonOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

const recordKey = (uid: string): string => CONNECTION_TOKENS + uid;
const refreshHash = (connection: Resource, deps: Platform): string =>
  createHash("sha256")
    .update(secretsOf(connection, deps).REFRESH_TOKEN ?? "")
    .digest("hex");
