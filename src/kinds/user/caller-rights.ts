/** Who a caller is and what the caller may do: the same rules as for a request, asked for every operation at once. */
import type { z } from "zod";
import { accountRefusal, roleRefusal, scopeRefusal, useRefusal } from "../../auth/authorize.ts";
import { roleIn } from "../../auth/role-in.ts";
import { type Caller, isAccountAdmin } from "../../contract/caller.ts";
import type { Operation, Role } from "../../contract/operation.ts";
import { toIso } from "../../lib/time/clock.ts";
import type { Workspace } from "../../store/people/workspaces.ts";
import type { Store } from "../../store/store.ts";
import { OPERATIONS } from "../index.ts";
import type { Platform } from "../port.ts";
import { workspaceList } from "../workspace/operations.ts";
import { type callerShape, WORKSPACES_MAX } from "./self-operations.ts";

interface Standing {
  workspace: Workspace;
  role: Role;
}

/** `named` is the workspace that the request names; null = the default of the credentials. */
export async function describeCaller(
  caller: Caller,
  named: string | null,
  { store }: Pick<Platform, "store">,
): Promise<z.input<typeof callerShape>> {
  const person = caller.subjectType === "user" ? await store.people.getUser(caller.subject) : null;
  const seen = await workspacesOf(caller, store);
  const standing = named === null ? await defaultOf(caller, seen, store) : await standingIn(caller, named, store);
  const [platformAccount] = await store.people.listAccountsAcrossUsers();
  const mayList = scopeRefusal(workspaceList, caller) === null;
  const shown = mayList ? seen.slice(0, WORKSPACES_MAX) : standing === null ? [] : [standing];
  return {
    sub: caller.subject,
    type: caller.subjectType,
    name: caller.displayName,
    ...(person?.given_name ? { givenName: person.given_name } : {}),
    ...(person?.family_name ? { familyName: person.family_name } : {}),
    authMethod: caller.authMethod,
    ...(caller.endsAt === undefined ? {} : { expiresAt: toIso(caller.endsAt) }),
    scopes: caller.scopes === null ? null : [...caller.scopes].sort(),
    accounts: caller.accounts.map(({ id, role }) => ({ id, role })),
    workspaces: shown.map(({ workspace: { name, displayName, accountId }, role }) => ({
      name,
      displayName,
      accountId,
      role,
    })),
    hasMoreWorkspaces: mayList && seen.length > WORKSPACES_MAX,
    workspace: standing?.workspace.name ?? null,
    refused: refusedTo(caller, { named, standing, platformAccount: platformAccount?.id ?? "" }),
  };
}

/** One more than `WORKSPACES_MAX` when there are more. */
async function workspacesOf(caller: Caller, store: Store): Promise<Standing[]> {
  if (caller.bound) {
    const workspace = await store.workspaces.get(caller.bound.workspace);
    return workspace ? [{ workspace, role: caller.bound.role }] : [];
  }
  const all = await store.workspaces.listFor(caller.subject, WORKSPACES_MAX + 1);
  const roles = await store.people.rolesIn(
    all.map(({ name }) => name),
    caller.subject,
  );
  return all.map((workspace) => ({
    workspace,
    role: isAccountAdmin(caller, workspace.accountId) ? "admin" : (roles.get(workspace.name) ?? "member"),
  }));
}

async function standingIn(caller: Caller, name: string, store: Store): Promise<Standing | null> {
  const workspace = await store.workspaces.get(name);
  const role = workspace && (await roleIn(caller, workspace, store));
  return workspace && role ? { workspace, role } : null;
}

/** The workspace of the key, or the caller's only workspace. */
async function defaultOf(caller: Caller, seen: readonly Standing[], store: Store): Promise<Standing | null> {
  const home = caller.home === null ? null : await standingIn(caller, caller.home, store);
  return home ?? (seen.length === 1 ? (seen[0] ?? null) : null);
}

interface Place {
  named: string | null;
  standing: Standing | null;
  /** The account of the operator, for account operations that name no account. */
  platformAccount: string;
}

function refusedTo(caller: Caller, place: Place): Record<string, string> {
  const refused: Record<string, string> = {};
  for (const operation of OPERATIONS) {
    const reason = refusalOf(operation, caller, place);
    if (reason !== null) refused[operation.id] = reason;
    else if (!isAdminFor(operation, caller, place))
      for (const use of operation.adminUses ?? []) refused[`${operation.id}?${use.query}`] = useRefusal(operation, use);
  }
  return refused;
}

function refusalOf(operation: Operation, caller: Caller, place: Place): string | null {
  if (operation.tenancy === "public") return null;
  const scope = scopeRefusal(operation, caller);
  if (scope !== null || operation.tenancy === "caller") return scope;
  if (operation.tenancy === "account") return accountRefusal(operation, caller, accountIdOf(operation, caller, place));
  const { standing, named } = place;
  if (standing !== null) return roleRefusal(operation, standing.role);
  return named === null
    ? `${operation.id} needs a workspace. Choose one.`
    : `These credentials give no access to the workspace '${named.slice(0, 64)}'.`;
}

const isAdminFor = (operation: Operation, caller: Caller, place: Place): boolean =>
  operation.tenancy === "account"
    ? isAccountAdmin(caller, accountIdOf(operation, caller, place))
    : place.standing?.role === "admin";

const accountIdOf = ({ params }: Operation, caller: Caller, { standing, platformAccount }: Place): string =>
  params.includes("accountId") ? (standing?.workspace.accountId ?? caller.accounts[0]?.id ?? "") : platformAccount;
