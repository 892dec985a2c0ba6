import { type Caller, isAccountAdmin } from "../contract/caller.ts";
import type { Role } from "../contract/operation.ts";
import type { Workspace } from "../store/people/workspaces.ts";
import type { Store } from "../store/store.ts";

/** The caller's role in a workspace; null when the caller does not belong to the workspace. */
export async function roleIn(
  caller: Caller,
  { name, accountId }: Pick<Workspace, "name" | "accountId">,
  { people }: Pick<Store, "people">,
): Promise<Role | null> {
  if (caller.bound) return caller.bound.workspace === name ? caller.bound.role : null;
  return isAccountAdmin(caller, accountId) ? "admin" : people.roleIn(name, caller.subject);
}
