/**
 * Rights = scope AND role. The scope `admin` stands for every scope and never raises a role. Each rule is a function
 * that returns the reason of a refusal, or null; a request that is refused gets the reason as its error.
 */
import { type Caller, isAccountAdmin } from "../contract/caller.ts";
import { PlatformError } from "../contract/errors.ts";
import type { Operation, Role } from "../contract/operation.ts";

export function authorizeScope(operation: Pick<Operation, "id" | "scope">, caller: Caller): void {
  refuse(scopeRefusal(operation, caller));
}

export function authorizeRole(operation: Pick<Operation, "id" | "role">, role: Role): void {
  refuse(roleRefusal(operation, role));
}

/** Checks parameters that need the admin role although the operation does not. */
export function authorizeUse(
  operation: Pick<Operation, "id" | "tenancy" | "adminUses">,
  query: Readonly<Record<string, string>>,
  isAdmin: boolean,
): void {
  const use = isAdmin ? undefined : operation.adminUses?.find(({ applies }) => applies(query));
  if (use) refuse(useRefusal(operation, use));
}

/** Account operations are open to the account's members; those that need `admin`, to its admins. */
export function authorizeAccount(operation: Pick<Operation, "id" | "role">, caller: Caller, accountId: string): void {
  refuse(accountRefusal(operation, caller, accountId));
}

export function scopeRefusal({ id, scope }: Pick<Operation, "id" | "scope">, { scopes }: Caller): string | null {
  if (scopes === null || scope === null || scopes.has("admin") || scopes.has(scope)) return null;
  return `These credentials lack the scope '${scope}' that ${id} needs.`;
}

export const roleRefusal = (operation: Pick<Operation, "id" | "role">, role: Role): string | null =>
  operation.role === "member" || role === "admin"
    ? null
    : `${operation.id} needs the admin role in this workspace. Ask a workspace admin.`;

/** The refusal of an admin use to a caller who is no admin. */
export const useRefusal = (
  { id, tenancy }: Pick<Operation, "id" | "tenancy">,
  { query }: Pick<NonNullable<Operation["adminUses"]>[number], "query">,
): string =>
  tenancy === "account"
    ? `Access denied: ${id} with ${query} needs an account admin.`
    : `${id} with ${query} needs the admin role in this workspace.`;

export function accountRefusal(
  operation: Pick<Operation, "id" | "role">,
  caller: Caller,
  accountId: string,
): string | null {
  if (!caller.accounts.some((account) => account.id === accountId)) return "Access denied: this account is not yours.";
  return operation.role === "admin" && !isAccountAdmin(caller, accountId)
    ? `Access denied: ${operation.id} needs an account admin.`
    : null;
}

function refuse(reason: string | null): void {
  if (reason !== null) throw new PlatformError("forbidden", reason);
}
