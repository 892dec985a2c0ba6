/**
 * Who may do what at the registry. Credentials are an API key, a token of the platform, or a service account with its
 * secret, sent as Basic (any user name goes with a key) or Bearer; or a registry token, which narrows them to
 * repositories. Each request is judged anew by the credentials themselves, so a registry token ends with them.
 */
import type { IncomingHttpHeaders } from "node:http";
import { type Authenticator, credentialOf, type Membership } from "../../auth/authenticator.ts";
import { roleRefusal, scopeRefusal } from "../../auth/authorize.ts";
import { type MachineDeps, verifyMachine } from "../../auth/machine-secrets.ts";
import type { Caller } from "../../contract/caller.ts";
import { PlatformError } from "../../contract/errors.ts";
import type { Operation } from "../../contract/operation.ts";
import { registryError } from "../../contract/registry-error.ts";
import { imageGet, imageLoad, imageTagDelete } from "../../kinds/image/operations.ts";
import type { FailedTries } from "../../lib/failed-tries.ts";
import { SECOND_MS } from "../../lib/time/clock.ts";
import { ACTIONS, type Action, isAction, type RegistryTokens, type Secret } from "./tokens.ts";

/** The operation of the API that each action stands for: it needs the same scope and role. */
export const OPERATION_OF: Record<Action, Pick<Operation, "id" | "scope" | "role" | "params" | "method">> = {
  pull: imageGet,
  push: imageLoad,
  delete: imageTagDelete,
};

export interface Guest {
  caller: Caller;
  secret: Secret;
  /** What a registry token allows, by repository; null: all that the caller may do. */
  allowed: Readonly<Record<string, readonly Action[]>> | null;
  /** When the registry token ends, and each that is made with it; infinite for other credentials. */
  until: number;
}

export interface AccessDeps {
  authenticator: Authenticator;
  machines: MachineDeps;
  tokens: RegistryTokens;
  tries: FailedTries;
  /** Address of this server. */
  publicUrl(): string;
}

/** A request, as far as it tells who asks from where. */
export interface Asking {
  headers: IncomingHttpHeaders;
  clientAddress: string;
}

export type Access = ReturnType<typeof createAccess>;

export function createAccess({ authenticator, machines, tokens, tries, publicUrl }: AccessDeps) {
  const challenge = (scope?: string): Record<string, string> => {
    const url = new URL(publicUrl());
    const asked = scope === undefined ? "" : `,scope="${scope}"`;
    return { "www-authenticate": `Bearer realm="${url.origin}/v2/token",service="${url.host}"${asked}` };
  };

  async function callerOf({ user, password }: Secret): Promise<Caller | null> {
    if (user !== "" && (await verifyMachine(machines, user, password))) return authenticator.machineNamed(user);
    try {
      return await authenticator.authenticate(credentialOf(password));
    } catch (error) {
      if (error instanceof PlatformError && error.code === "unauthenticated") return null;
      throw error;
    }
  }

  async function guestOf(
    { secret, allowed, until }: Omit<Guest, "caller">,
    address: string,
    scope?: string,
  ): Promise<Guest> {
    // Every user name goes with a key: with the name, one key would be as many credentials as there are names.
    const credential = secret.password;
    const waitMs = tries.waitMs(address, credential);
    if (waitMs > 0)
      throw registryError(
        "too_many_requests",
        "TOOMANYREQUESTS",
        "Too many tries with credentials that are not valid.",
        {
          headers: { "retry-after": String(Math.ceil(waitMs / SECOND_MS)) },
        },
      );
    const caller = await callerOf(secret);
    if (caller) {
      tries.passed(credential);
      return { caller, secret, allowed, until };
    }
    tries.failed(address, credential);
    const message = "The credentials are not valid. Sign in with an API key as password, or a service account.";
    throw registryError("unauthenticated", "UNAUTHORIZED", message, { headers: challenge(scope) });
  }

  /** Why the caller may not do this; null when the caller may. */
  function refusalOf({ caller }: Pick<Guest, "caller">, membership: Membership | null, action: Action): string | null {
    if (!membership) return "These credentials give no access to this repository.";
    return scopeRefusal(OPERATION_OF[action], caller) ?? roleRefusal(OPERATION_OF[action], membership.role);
  }

  /** Said only to a caller who may make a workspace, and may know which names are taken. */
  async function absence({ accounts, bound }: Caller, workspace: string): Promise<string | null> {
    if (bound !== null || !accounts.some(({ role }) => role === "admin")) return null;
    return (await machines.store.workspaces.get(workspace)) ? null : `There is no workspace '${workspace}'.`;
  }

  return {
    /** `scope`: what a client without credentials is told to ask for. */
    async identify({ headers: { authorization = "" }, clientAddress }: Asking, scope?: string): Promise<Guest> {
      const [, scheme = "", value = ""] = /^(basic|bearer) +(\S+)$/i.exec(authorization) ?? [];
      if (scheme === "")
        throw registryError("unauthenticated", "UNAUTHORIZED", "Sign in first.", { headers: challenge(scope) });
      if (scheme.toLowerCase() === "basic") return guestOf(whole(basicOf(value)), clientAddress, scope);
      return guestOf(tokens.open(value) ?? whole({ user: "", password: value }), clientAddress, scope);
    },

    async authorize(guest: Guest, repository: string, action: Action): Promise<Membership> {
      const [workspace = ""] = repository.split("/");
      const membership = await authenticator.membershipIn(guest.caller, workspace);
      const reason = refusalOf(guest, membership, action);
      // No other token of these credentials would help, so the client is not told to sign in again.
      if (!membership || reason !== null)
        throw registryError("forbidden", "DENIED", (await absence(guest.caller, workspace)) ?? reason ?? "");
      if (guest.allowed && !guest.allowed[repository]?.includes(action))
        throw registryError("unauthenticated", "UNAUTHORIZED", `This token does not allow to ${action} here.`, {
          headers: challenge(`repository:${repository}:${action}`),
        });
      return membership;
    },

    /** A token for those of the asked actions that the caller may do. `scopes`: `repository:team/tool:pull,push`. */
    async grant(guest: Guest, scopes: readonly string[]): Promise<{ token: string; expiresInSeconds: number }> {
      const allowed: Record<string, Action[]> = {};
      for (const scope of scopes) {
        const [, repository = "", actions = ""] = /^repository:([^:/]+(?:\/[^:/]+){1,2}):([a-z,*]+)$/.exec(scope) ?? [];
        const membership = await authenticator.membershipIn(guest.caller, repository.split("/")[0] ?? "");
        const asked = actions.split(",").flatMap((word) => (word === "*" ? ACTIONS : [word]));
        const may = (action: Action): boolean =>
          (guest.allowed?.[repository]?.includes(action) ?? guest.allowed === null) &&
          refusalOf(guest, membership, action) === null;
        const given = asked.filter(isAction).filter(may);
        if (given.length > 0) allowed[repository] = [...new Set([...(allowed[repository] ?? []), ...given])];
      }
      return tokens.make({ secret: guest.secret, allowed }, guest.until);
    },

    secretOf: (user: string, password: string, { clientAddress }: Asking): Promise<Guest> =>
      guestOf(whole({ user, password }), clientAddress),
  };
}

const whole = (secret: Secret): Omit<Guest, "caller"> => ({ secret, allowed: null, until: Number.POSITIVE_INFINITY });

function basicOf(value: string): Secret {
  const text = Buffer.from(value, "base64").toString("utf8");
  const colon = text.indexOf(":");
  return { user: text.slice(0, Math.max(0, colon)), password: text.slice(colon + 1) };
}
