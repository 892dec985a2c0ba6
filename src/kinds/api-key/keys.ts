/** Code shared by the API keys of people and of service accounts. */
import { randomBytes } from "node:crypto";
import type { z } from "zod";
import { ENDED, endOf } from "../../auth/rights/ends.ts";
import { type Caller, hangsOn } from "../../contract/caller.ts";
import { notFound, PlatformError } from "../../contract/errors.ts";
import { DAY_MS, SECOND_MS, toIso } from "../../lib/time/clock.ts";
import { formatDuration, parseDurationMs } from "../../lib/time/duration.ts";
import type { ApiKey, OwnerType } from "../../store/people/keys.ts";
import { endWithin } from "../handing-on.ts";
import type { Platform } from "../port.ts";
import { SCOPES } from "../scopes.ts";
import type { apiKeyShape, newApiKey } from "./operations.ts";

/** Longest lifetime of a key: ten years, leap days included. */
const EXPIRY_MAX_MS = 3653 * DAY_MS;
/** Keys of one owner. The limit stops a client that makes keys in a loop. */
const KEYS_PER_OWNER_MAX = 100;

export interface Owner {
  type: OwnerType;
  id: string;
  /** A service account's key works in this workspace only; a person's key uses it when a request names no workspace. */
  workspace: string | null;
}

type Wire = z.input<typeof apiKeyShape>;

export const listKeys = async (owner: Owner, deps: Platform): Promise<Wire[]> =>
  (await standingKeys(owner, deps)).map(keyToWire);

/** Leaves out keys whose underlying right has ended; a periodic task deletes those within an hour. */
const standingKeys = async ({ type, id }: Owner, deps: Platform): Promise<ApiKey[]> =>
  standing(await deps.store.keys.listKeys(type, id), deps);

export async function standing<Made extends Pick<ApiKey, "hangs_on">>(all: Made[], deps: Platform): Promise<Made[]> {
  const ends = await Promise.all(all.map(({ hangs_on }) => endOf(hangs_on, deps)));
  return all.filter((_, at) => ends[at] !== ENDED);
}

export async function createKey(
  owner: Owner,
  draft: z.output<typeof newApiKey>,
  caller: Caller,
  deps: Platform,
): Promise<Wire> {
  const { store, clock } = deps;
  const scopes = grantScopes(draft.scopes, caller);
  const asked = draft.expires_in === undefined ? null : clock.now() + parseExpiry(draft.expires_in);
  const expiresAt = endWithin("expires_in", asked, caller);
  if ((await standingKeys(owner, deps)).length >= KEYS_PER_OWNER_MAX)
    throw new PlatformError(
      "usage_limit_exceeded",
      `There are ${KEYS_PER_OWNER_MAX} keys already. Delete one that is no longer used.`,
    );
  const { key, secret } = await store.keys.createKey({
    name: draft.name ?? `key-${randomBytes(4).toString("hex")}`,
    ownerType: owner.type,
    owner: owner.id,
    workspace: owner.workspace,
    scopes,
    createdBy: caller.displayName,
    expiresAt,
    hangsOn: hangsOn(caller),
  });
  return { ...keyToWire(key), apiKey: secret };
}

export async function deleteKey({ type, id }: Owner, keyId: string, { store }: Platform): Promise<{ message: string }> {
  if (!(await store.keys.removeKey(type, id, keyId))) throw notFound(`API key '${keyId}'`);
  return { message: `API key '${keyId}' is deleted and no longer works.` };
}

/** Refuses scopes that the caller does not have. */
export function grantScopes(asked: readonly string[] | undefined, caller: Caller): string[] | null {
  const unknown = asked?.find((scope) => !SCOPES.has(scope));
  if (unknown !== undefined) throw new PlatformError("invalid_field", `scopes: '${unknown}' is not a scope.`);
  if (caller.scopes === null) return asked ? [...asked] : null;
  const own = caller.scopes;
  if (asked === undefined) return [...own];
  const beyond = own.has("admin") ? undefined : asked.find((scope) => !own.has(scope));
  if (beyond !== undefined)
    throw new PlatformError("forbidden", `scopes: these credentials do not have '${beyond}' themselves.`);
  return [...asked];
}

function parseExpiry(text: string | number): number {
  const ms = parseDurationMs(text);
  if (ms === null || ms <= 0 || ms > EXPIRY_MAX_MS)
    throw new PlatformError(
      "invalid_field",
      "expires_in: must be a number with one of s, m, h, d, w, at most 10 years (3653d), such as 30d.",
    );
  return ms;
}

/**
 * Creation and expiry come from two clock readings some milliseconds apart, so the difference is rounded to a second.
 */
const lifetime = (from: number, to: number): string => formatDuration(Math.round((to - from) / SECOND_MS) * SECOND_MS);

const keyToWire = (key: ApiKey): Wire => ({
  id: key.id,
  name: key.name,
  prefix: key.prefix,
  sub: key.owner,
  sub_type: key.owner_type as OwnerType,
  ...(key.scopes ? { scopes: key.scopes } : {}),
  ...(key.expires_at === null
    ? {}
    : { expires_in: lifetime(key.created_at, key.expires_at), expiresAt: toIso(key.expires_at) }),
  ...(key.last_used_at === null ? {} : { lastUsedAt: toIso(key.last_used_at) }),
  ...(key.workspace === null ? {} : { workspace: key.workspace }),
  createdAt: toIso(key.created_at),
  updatedAt: toIso(key.created_at),
  createdBy: key.created_by,
  updatedBy: key.created_by,
});
