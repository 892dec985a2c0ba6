/** Credentials at the inference edge: the same callers, workspaces and scopes as at the management edge. */
import { type Authenticator, credentialOf } from "../auth/authenticator.ts";
import { authorizeScope } from "../auth/authorize.ts";
import { WORKLOADS } from "../contract/addresses.ts";
import type { Caller } from "../contract/caller.ts";
import { hasLogsScope } from "../contract/crash-output.ts";
import { PlatformError } from "../contract/errors.ts";
import { mayEnter } from "../contract/kept-access.ts";
import type { GatewayDeps, Principal } from "./deps.ts";

interface CallerPrincipal extends Principal {
  caller: Caller;
}

export interface Principals
  extends Pick<GatewayDeps, "authenticate" | "authorize" | "stillAllowed" | "hasWorkspace" | "mayReadLogs"> {
  /** The owner of an API key; null when the key is not, or no longer, valid. */
  principalOfKey(keyId: string): Promise<Principal | null>;
  /** The workspace of requests that name none; null where the credentials do not say. */
  homeOf(principal: Principal): Promise<string | null>;
  /** The workspaces that these credentials can be used in. */
  workspacesOf(principal: Principal, limit: number): Promise<string[]>;
}

const principalOf = (caller: Caller): CallerPrincipal => ({
  ...{ id: caller.subject, type: caller.subjectType, method: caller.authMethod, keyId: caller.keyId, caller },
});

export function createPrincipals(authenticator: Authenticator): Principals {
  const authorize: Principals["authorize"] = async (principal, { workspace, kind, kept = null }) => {
    const { caller } = principal as CallerPrincipal;
    const membership = await authenticator.membershipIn(caller, workspace);
    if (!membership || !mayEnter(kept, membership.role)) return false;
    try {
      authorizeScope({ id: `calling ${kind}`, scope: WORKLOADS[kind].scope }, caller);
      return true;
    } catch {
      return false; // the gateway writes its own FORBIDDEN answer
    }
  };
  return {
    authorize,
    async stillAllowed(token, access) {
      const caller = await authenticator.callerOfOpen(credentialOf(token));
      return caller !== null && (await authorize(principalOf(caller), access));
    },
    async authenticate(token): Promise<CallerPrincipal | null> {
      try {
        const caller = await authenticator.authenticate(credentialOf(token));
        return principalOf(caller);
      } catch (error) {
        if (error instanceof PlatformError && error.code === "unauthenticated") return null;
        throw error;
      }
    },
    principalOfKey: async (keyId) => {
      const caller = await authenticator.callerOfKey(keyId);
      if (caller) authenticator.noteUse(keyId);
      return caller && principalOf(caller);
    },
    homeOf: async (principal) => authenticator.workspaceOf((principal as CallerPrincipal).caller),
    workspacesOf: (principal, limit) => authenticator.workspacesOf((principal as CallerPrincipal).caller, limit),
    hasWorkspace: (name) => authenticator.hasWorkspace(name),
    async mayReadLogs(principal, workspace) {
      // A preview's token is a principal without a caller.
      const { caller } = principal as Partial<CallerPrincipal>;
      return (
        caller !== undefined && hasLogsScope(caller) && (await authenticator.membershipIn(caller, workspace)) !== null
      );
    },
  };
}
