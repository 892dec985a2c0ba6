/** Credentials at the inference edge: the same callers, workspaces and scopes as at the management edge. */
import type { Authenticator } from "../auth/authenticator.ts";
import { authorizeScope } from "../auth/authorize.ts";
import type { WorkloadKind } from "../contract/addresses.ts";
import type { Caller } from "../contract/caller.ts";
import { PlatformError } from "../contract/errors.ts";
import type { GatewayDeps, Principal } from "./deps.ts";

/** What calling a workload needs; a token without scopes has them all. */
const CALL_SCOPES: Record<WorkloadKind, string> = {
  agent: "agents:get",
  function: "functions:get",
  model: "models:get",
  sandbox: "sandboxes:control",
  job: "jobs:create",
  application: "applications:get",
};

interface CallerPrincipal extends Principal {
  caller: Caller;
}

export function createPrincipals(authenticator: Authenticator): Pick<GatewayDeps, "authenticate" | "authorize"> {
  return {
    async authenticate(token): Promise<CallerPrincipal | null> {
      try {
        const caller = await authenticator.authenticate(token);
        return { id: caller.subject, type: caller.subjectType, method: caller.authMethod, keyId: caller.keyId, caller };
      } catch (error) {
        if (error instanceof PlatformError && error.code === "unauthenticated") return null;
        throw error;
      }
    },
    async authorize(principal, { workspace, kind }) {
      const { caller } = principal as CallerPrincipal;
      if (!(await authenticator.membershipIn(caller, workspace))) return false;
      try {
        authorizeScope({ id: `calling ${kind}`, scope: CALL_SCOPES[kind] }, caller);
        return true;
      } catch {
        return false; // the gateway says FORBIDDEN in its own shape
      }
    },
  };
}
