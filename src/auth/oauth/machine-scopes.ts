/** The effective rights of a service account as scopes: its tokens claim neither more nor less. */
import type { Role } from "../../contract/operation.ts";
import { ALL_SCOPES } from "./access-tokens.ts";

/** `memberScopes` are all scopes a member can use; an admin with every scope has the single scope `admin`. */
export function machineScopes(
  role: Role,
  scopes: Iterable<string> | null,
  memberScopes: ReadonlySet<string>,
): readonly string[] {
  const own = scopes === null ? [ALL_SCOPES] : [...scopes];
  const isAll = own.includes(ALL_SCOPES);
  if (role === "admin") return isAll ? [ALL_SCOPES] : own;
  return isAll ? [...memberScopes] : own.filter((scope) => memberScopes.has(scope));
}
