/** Writes one audit entry for every call that tries to change something or to read a secret, whatever its outcome. */
import type { Caller } from "../contract/caller.ts";
import type { Operation } from "../contract/operation.ts";
import type { AuditEntry, AuditOutcome } from "../store/audit.ts";
import type { Workspace } from "../store/people/workspaces.ts";
import { errorResponse } from "./error-response.ts";

const TARGET_LENGTH_MAX = 300;

export interface AuditedCall {
  operation: Pick<Operation, "id" | "params" | "method">;
  /** Secrets were asked for in clear. */
  isSecret: boolean;
  caller: Caller;
  /** Null also when the caller is not allowed in the workspace. */
  workspace: Workspace | null;
  params: Record<string, string>;
  body: unknown;
  sourceAddress: string;
  requestId: string;
}

export function auditEntry(call: AuditedCall, result: { status: number } | { error: unknown }): AuditEntry {
  const { operation, caller, workspace } = call;
  const status = "error" in result ? errorResponse(result.error).status : result.status;
  return {
    actor: caller.subject,
    actorType: caller.subjectType,
    actorName: caller.displayName,
    authMethod: caller.authMethod,
    keyId: caller.keyId,
    action: call.isSecret ? `${operation.id}Secrets` : operation.id,
    target: targetOf(call),
    accountId: workspace?.accountId ?? ownAccount(call),
    workspace: workspace?.name ?? null,
    outcome: outcomeOf(status),
    status,
    sourceAddress: call.sourceAddress,
    requestId: call.requestId,
  };
}

/** The account in the path if it is the caller's, otherwise the caller's first account. */
const ownAccount = ({ caller: { accounts }, params }: AuditedCall): string | null =>
  (accounts.find(({ id }) => id === params.accountId) ?? accounts[0])?.id ?? null;

const outcomeOf = (status: number): AuditOutcome =>
  status < 400 ? "ok" : status === 401 || status === 403 ? "denied" : "failed";

/** Names only: of the body, which may hold secrets, just the requested name. */
function targetOf({ operation, params, body }: AuditedCall): string {
  const {
    metadata,
    name = metadata?.name,
    email = name,
  } = (body ?? {}) as {
    metadata?: { name?: unknown };
    name?: unknown;
    email?: unknown;
  };
  const words = operation.params.map((param) => params[param] ?? "");
  if (operation.method === "POST" && typeof email === "string") words.push(email);
  return words.join("/").slice(0, TARGET_LENGTH_MAX);
}
