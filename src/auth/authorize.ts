/** Rights = scope AND role. The scope `admin` stands for every scope and never raises a role. */
import { type Caller, isAccountAdmin } from "../contract/caller.ts";
import { PlatformError } from "../contract/errors.ts";
import type { Operation, Role } from "../contract/operation.ts";

export function authorizeScope(operation: Pick<Operation, "id" | "scope">, caller: Caller): void {
  const { scopes } = caller;
  if (scopes === null || operation.scope === null || scopes.has("admin") || scopes.has(operation.scope)) return;
  throw new PlatformError(
    "forbidden",
    `These credentials lack the scope '${operation.scope}' that ${operation.id} needs.`,
  );
}

export function authorizeRole(operation: Pick<Operation, "id" | "role">, role: Role): void {
  if (operation.role === "member" || role === "admin") return;
  throw new PlatformError(
    "forbidden",
    `${operation.id} needs the admin role in this workspace. Ask a workspace admin.`,
  );
}

/** Checks parameters that need the admin role although the operation does not. */
export function authorizeUse(
  { id, tenancy, adminUses = [] }: Pick<Operation, "id" | "tenancy" | "adminUses">,
  query: Readonly<Record<string, string>>,
  isAdmin: boolean,
): void {
  const use = isAdmin ? undefined : adminUses.find(({ applies }) => applies(query));
  if (!use) return;
  throw new PlatformError(
    "forbidden",
    tenancy === "account"
      ? `Access denied: ${id} with ${use.query} needs an account admin.`
      : `${id} with ${use.query} needs the admin role in this workspace.`,
  );
}

/** Account operations are open to the account's members; those that need `admin`, to its admins. */
export function authorizeAccount(operation: Pick<Operation, "id" | "role">, caller: Caller, accountId: string): void {
  if (!caller.accounts.some((account) => account.id === accountId)) {
    throw new PlatformError("forbidden", "Access denied: this account is not yours.");
  }
  if (operation.role === "admin" && !isAccountAdmin(caller, accountId)) {
    throw new PlatformError("forbidden", `Access denied: ${operation.id} needs an account admin.`);
  }
}
