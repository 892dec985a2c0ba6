/**
 * Turns credentials into a caller, and a caller and a workspace into a role. Both are cached, and the caches are
 * cleared whenever any identity changes on any server, so that a revoked key stops at once without a query per request.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { Caller } from "../contract/caller.ts";
import { PlatformError } from "../contract/errors.ts";
import type { Role } from "../contract/operation.ts";
import type { Running } from "../lib/lifecycle.ts";
import { type Soon, soon } from "../lib/soon.ts";
import { type Clock, MINUTE_MS, SECOND_MS } from "../lib/time/clock.ts";
import { type ApiKey, hashSecret } from "../store/people/keys.ts";
import type { Workspace } from "../store/people/workspaces.ts";
import type { Store } from "../store/store.ts";
import { REVOKED, type TokenClaims } from "./oauth/access-tokens.ts";
import { ownClientId } from "./oauth/own-client.ts";
import { dependsOn, ENDED, ENDLESS, endOf, finite, grantRight } from "./rights/ends.ts";
import { roleIn } from "./role-in.ts";

/** Most cache entries, so that trying many keys cannot fill the memory; a full cache is cleared. */
const CACHE_MAX = 10_000;
const SECRET_LENGTH_MAX = 8192;
/** How often times of last use are written; see Keys.noteUse. */
const USE_FLUSH_MS = MINUTE_MS;
/** How long a workload's token is accepted before its replica is checked again. */
const WORKLOAD_LOOK_MS = SECOND_MS;

export interface Membership {
  workspace: Workspace;
  role: Role;
}

/** A bearer secret and its hash, by which it is cached and stored. */
export interface Credential {
  secret: string;
  hash: string;
}

/** The parts of a caller that come from the credential, not from its owner. */
type Used = Pick<Caller, "authMethod" | "keyId" | "right" | "endsAt" | "scopes" | "home">;

export interface AuthenticatorDeps {
  store: Store;
  clock: Clock;
  brand: string;
  /** Verifies tokens of this issuer; null for other texts and, unless they are asked for, expired tokens. */
  verifyToken(token: string, options?: { orExpired: boolean }): Promise<TokenClaims | null>;
  /** Whether the workload with this uid has this replica now. */
  isRunning(workload: string, copy: string): Promise<boolean>;
  /** The metadata address that tells a refused client how to get a token. */
  resourceMetadataUrl(): string;
}

const ABSENT: Used = { authMethod: "api_key", keyId: null, right: null, scopes: new Set(), home: null };

export const credentialOf = (secret: string): Credential => ({ secret, hash: hashSecret(secret) });

export type Authenticator = ReturnType<typeof createAuthenticator>;

export function createAuthenticator({
  store,
  clock,
  brand,
  verifyToken,
  isRunning,
  resourceMetadataUrl,
}: AuthenticatorDeps) {
  const callers = new Map<string, { caller: Caller; expiresAt: number }>();
  const memberships = new Map<string, Membership | null>();
  const uses = new Map<string, number>();
  const headerNames = [`x-${brand}-authorization`, "x-service-authorization", "authorization"];
  // Counts identity changes: a value read before a change must not be cached after it.
  let era = 0;
  const unsubscribe = store.onIdentityChange(() => {
    era += 1;
    callers.clear();
    memberships.clear();
  });
  const keep = <T>(cache: Map<string, T>, key: string, value: T, readIn: number): void => {
    if (readIn !== era) return;
    if (cache.size >= CACHE_MAX) cache.clear();
    cache.set(key, value);
  };
  const flushUses = (): Promise<void> => {
    const batch = new Map(uses);
    uses.clear();
    return store.keys.noteUse(batch);
  };
  const timer = setInterval(() => void flushUses().catch(() => {}), USE_FLUSH_MS).unref(); // last use is a hint; the next flush tells again

  const unauthenticated = (message: string): PlatformError =>
    new PlatformError("unauthenticated", message, {
      headers: { "www-authenticate": `Bearer realm="berth", resource_metadata="${resourceMetadataUrl()}"` },
    });

  function authenticate(credential: Credential): Soon<Caller> {
    const known = callers.get(credential.hash);
    const now = clock.now();
    if (known && known.expiresAt > now) {
      if (known.caller.keyId) uses.set(known.caller.keyId, now);
      return known.caller;
    }
    return recognise(credential, now);
  }

  /** Until when a credential that was just authenticated may be remembered; 0 = not at all. */
  const rememberedUntil = (hash: string): number => callers.get(hash)?.expiresAt ?? 0;

  async function recognise({ secret, hash }: Credential, now: number): Promise<Caller> {
    const readIn = era;
    const remember = (caller: Caller, expiresAt: number): Caller => {
      keep(callers, hash, { caller, expiresAt: Math.min(expiresAt, caller.endsAt ?? ENDLESS) }, readIn);
      return caller;
    };
    const key = await store.keys.findKey(secret);
    if (key) {
      if (key.expires_at !== null && key.expires_at <= now)
        throw unauthenticated("This API key has expired. Create a new one.");
      const caller = await callerOf(key);
      if (!caller)
        throw unauthenticated("The owner of this API key no longer exists, or the right that made the key has ended.");
      uses.set(key.id, now);
      return remember(caller, ENDLESS);
    }
    const claims = await verifyToken(secret);
    if (!claims) throw unauthenticated("The credentials are not valid. Check the API key, or sign in again.");
    const caller = await bearerOfToken(claims);
    if (!caller) throw unauthenticated("This token has been revoked, or its owner no longer exists.");
    const lookAgainAt = caller.subjectType === "workload" ? now + WORKLOAD_LOOK_MS : claims.expiresAt;
    return remember(caller, Math.min(lookAgainAt, claims.expiresAt));
  }

  /**
   * The caller of a credential that has opened a connection; null when the connection has to end. Clients renew access
   * tokens and cannot renew a connection, so a token whose time is over counts while the right behind it stands.
   */
  async function callerOfOpen(credential: Credential): Promise<Caller | null> {
    try {
      return await authenticate(credential);
    } catch (error) {
      if (!(error instanceof PlatformError && error.code === "unauthenticated")) throw error;
      const claims = await verifyToken(credential.secret, { orExpired: true });
      return claims && bearerOfToken(claims);
    }
  }

  /** A person's token is valid while its consent is, a workload's token while its replica runs. */
  async function bearerOfToken({
    id,
    clientId,
    subjectType,
    subject,
    scopes,
    grantId,
    copy,
  }: TokenClaims): Promise<Caller | null> {
    if (await store.oauth.find(REVOKED, id)) return null;
    const rest = { authMethod: "jwt", keyId: null, scopes, home: null } as const;
    if (subjectType === "service_account") {
      const { workload = null } = (await store.keys.findServiceAccountAcrossWorkspaces(subject)) ?? {};
      if (workload !== null && !(copy !== null && (await isRunning(workload, copy)))) return null;
      return serviceAccountCaller(subject, { ...rest, right: `account:${subject}` });
    }
    const right = grantId === null ? null : grantRight(grantId);
    const end = right === null ? ENDED : await endOf(right, { store, clock });
    if (end === ENDED) return null;
    // A person who signs in at the command line or in the console with all scopes acts in their own right, unless
    // that sign-in itself depends on a right that ends.
    const isOwnRight = [brand, ownClientId(brand)].includes(clientId) && scopes === null;
    const hangs = isOwnRight && right !== null && (await dependsOn(right, { store }));
    return userCaller(subject, isOwnRight && !hangs ? { ...rest, right: null } : { ...rest, right, ...finite(end) });
  }

  async function callerOf(key: ApiKey): Promise<Caller | null> {
    const scopes = key.scopes ? new Set(key.scopes) : null;
    const end = Math.min(key.expires_at ?? ENDLESS, await endOf(key.hangs_on, { store, clock }));
    if (end === ENDED) return null;
    const rest = { authMethod: "api_key", keyId: key.id, scopes, right: `key:${key.id}`, ...finite(end) } as const;
    return key.owner_type === "user"
      ? userCaller(key.owner, { ...rest, home: key.workspace })
      : serviceAccountCaller(key.owner, { ...rest, home: null });
  }

  /**
   * The caller of an API key, for a credential that was derived from the key; null when the key is not valid. Whoever has
   * checked that credential calls `noteUse`.
   */
  async function callerOfKey(id: string): Promise<Caller | null> {
    const now = clock.now();
    const slot = `key:${id}`;
    const known = callers.get(slot);
    if (known && known.expiresAt > now) return known.caller;
    const readIn = era;
    const key = await store.keys.getKey(id);
    if (!key || (key.expires_at !== null && key.expires_at <= now)) return null;
    const caller = await callerOf(key);
    if (!caller) return null;
    keep(callers, slot, { caller, expiresAt: caller.endsAt ?? ENDLESS }, readIn);
    return caller;
  }

  /** A caller without credentials or scopes, for somebody who is not calling now; null when they no longer exist. */
  const callerNamed = (subject: string, subjectType: Caller["subjectType"]): Promise<Caller | null> =>
    (subjectType === "user" ? userCaller : serviceAccountCaller)(subject, ABSENT);

  async function userCaller(sub: string, rest: Used): Promise<Caller | null> {
    const [user, accounts] = await Promise.all([store.people.getUser(sub), store.people.accountsOf(sub)]);
    return user && { ...rest, subject: user.sub, subjectType: "user", displayName: user.email, accounts, bound: null };
  }

  async function serviceAccountCaller(clientId: string, rest: Used): Promise<Caller | null> {
    const account = await store.keys.findServiceAccountAcrossWorkspaces(clientId);
    const workspace = account && (await store.workspaces.get(account.workspace));
    const end = account ? Math.min(rest.endsAt ?? ENDLESS, await endOf(account.hangs_on, { store, clock })) : ENDED;
    if (!account || !workspace || end === ENDED) return null;
    const own = account.scopes ? new Set(account.scopes) : null;
    return {
      ...rest,
      ...finite(end),
      subject: clientId,
      subjectType: account.workload ? "workload" : "service_account",
      displayName: account.name,
      accounts: [{ id: workspace.accountId, role: "member" }],
      bound: { workspace: workspace.name, role: account.role as Role },
      scopes: own && rest.scopes ? own.intersection(rest.scopes) : (own ?? rest.scopes),
    };
  }

  /** The caller's role in a workspace; null when they are not a member. */
  function membershipIn(caller: Caller, name: string): Soon<Membership | null> {
    const key = `${caller.subject}\0${name}`;
    const known = memberships.get(key);
    return known === undefined ? findMembership(key, caller, name) : known;
  }

  async function findMembership(key: string, caller: Caller, name: string): Promise<Membership | null> {
    const readIn = era;
    const workspace = await store.workspaces.get(name);
    const role = workspace && (await roleIn(caller, workspace, store));
    const membership = workspace && role ? { workspace, role } : null;
    keep(memberships, key, membership, readIn);
    return membership;
  }

  async function soleWorkspaceOf(caller: Caller): Promise<string | null> {
    const key = `${caller.subject}\0`;
    const known = memberships.get(key);
    if (known !== undefined) return known?.workspace.name ?? null;
    const readIn = era;
    const [only, second] = await store.workspaces.listFor(caller.subject);
    keep(memberships, key, only && !second ? { workspace: only, role: "member" } : null, readIn);
    return only && !second ? only.name : null;
  }

  return {
    rememberedUntil,
    authenticate,
    membershipIn,
    callerNamed,
    callerOfKey,
    callerOfOpen,
    noteUse: (keyId: string): void => void uses.set(keyId, clock.now()),

    /** The caller that a service account is once its secret was verified; null when it no longer exists. */
    machineNamed: (clientId: string): Promise<Caller | null> =>
      serviceAccountCaller(clientId, {
        ...{ authMethod: "jwt", keyId: null, scopes: null, home: null, right: `account:${clientId}` },
      }),

    hasWorkspace: async (name: string): Promise<boolean> => (await store.workspaces.get(name)) !== null,

    /** The bearer credential of a request; the platform's own header takes precedence over Authorization. */
    bearerOf(headers: IncomingHttpHeaders): Credential {
      for (const name of headerNames) {
        const value = headers[name];
        if (typeof value !== "string" || value === "") continue;
        const match = /^bearer +(\S+)$/i.exec(value.slice(0, SECRET_LENGTH_MAX).trim());
        if (match?.[1]) return credentialOf(match[1]);
        throw unauthenticated(`The ${name} header must have the form 'Bearer <API key or token>'.`);
      }
      throw unauthenticated("Credentials are missing. Send 'Authorization: Bearer <API key>'.");
    },

    /** The workspace of the key, or the person's only workspace; null otherwise. */
    workspaceOf(caller: Caller): Soon<string | null> {
      if (caller.bound) return caller.bound.workspace;
      if (caller.home === null) return soleWorkspaceOf(caller);
      return soon(membershipIn(caller, caller.home), (found) => (found ? caller.home : soleWorkspaceOf(caller)));
    },

    /** All workspaces that the caller can enter, by name. */
    async workspacesOf(caller: Caller, limit: number): Promise<string[]> {
      if (caller.bound) return [caller.bound.workspace];
      return (await store.workspaces.listFor(caller.subject, limit)).map(({ name }) => name);
    },

    async stop(): Promise<void> {
      clearInterval(timer);
      unsubscribe();
      await flushUses();
    },
  } satisfies Running & Record<string, unknown>;
}
