/** What a service account may really do, in the words of scopes: its tokens claim neither more nor less. */
import type { Role } from "../../contract/operation.ts";
import { ALL_SCOPES } from "./access-tokens.ts";

/** `memberScopes` are all that a member's role can use; the role admin with every scope is the one word `admin`. */
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
