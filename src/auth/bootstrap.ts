/** The first start: creates an account, its admin, a workspace and a key, all or nothing. */
import { PlatformError } from "../contract/errors.ts";
import { isReservedWord } from "../contract/reserved-words.ts";
import { randomSecret } from "../lib/ids.ts";
import type { Transaction } from "../store/database/database.ts";
import { hashSecret } from "../store/people/keys.ts";
import type { Workspace } from "../store/people/workspaces.ts";
import type { Store } from "../store/store.ts";

export const ADMIN_EMAIL = "admin@berth.local";

export interface BootstrapOptions {
  workspace: string;
  region: string;
  apiKey: string | undefined;
}

export interface Bootstrapped {
  /** The admin key if this start created one; null when there were credentials already. */
  newKey: string | null;
  workspace: string;
}

export async function bootstrap(store: Store, options: BootstrapOptions): Promise<Bootstrapped> {
  try {
    return await make(store, options);
  } catch (error) {
    // Two servers may start on one new database; the second one finds the rows of the first.
    if ((await store.people.countUsers()) === 0) throw error;
    return make(store, options);
  }
}

async function make(store: Store, { workspace, region, apiKey }: BootstrapOptions): Promise<Bootstrapped> {
  const secret = apiKey ?? `bk_${randomSecret()}`;
  const made = await store.write(async (tx) => {
    const known = await tx.queries
      .selectFrom("users")
      .select("sub")
      .where("email", "=", ADMIN_EMAIL)
      .executeTakeFirst();
    if (known) {
      // The operator may pass another key at any start; it is added, and older keys stay until they are deleted.
      const has =
        apiKey &&
        (await tx.queries
          .selectFrom("api_keys")
          .select("id")
          .where("hash", "=", hashSecret(apiKey))
          .executeTakeFirst());
      if (!apiKey || has) return false;
      const live = await tx.queries
        .selectFrom("workspaces")
        .select("name")
        .where("name", "=", workspace)
        .where("deleted_at", "is", null)
        .executeTakeFirst();
      await addKey(store, tx, known.sub, apiKey, live?.name ?? null);
      return true;
    }
    if (isReservedWord(workspace))
      throw new PlatformError(
        "bad_request",
        `'${workspace}' is an address of the platform and cannot name a workspace.`,
      );
    const account = await store.people.createAccount(tx, "default");
    const admin = await store.people.createUser(tx, { email: ADMIN_EMAIL, givenName: "Admin" });
    await store.people.setAccountRole(tx, account.id, admin.sub, "admin");
    await store.workspaces.insert(
      tx,
      {
        name: workspace,
        accountId: account.id,
        displayName: workspace,
        region,
        labels: {},
        groupMappings: [],
        runtime: {},
      },
      ADMIN_EMAIL,
    );
    await store.people.setMember(tx, workspace, admin.sub, "admin", "invitation");
    await addKey(store, tx, admin.sub, secret, workspace);
    return true;
  });
  return { newKey: made ? secret : null, workspace };
}

const addKey = (store: Store, tx: Transaction, sub: string, secret: string, workspace: string | null) =>
  store.keys.insertKey(tx, {
    name: "bootstrap",
    ownerType: "user",
    owner: sub,
    workspace,
    scopes: null,
    createdBy: ADMIN_EMAIL,
    expiresAt: null,
    secret,
  });

/** Moves a workspace from created to ready. It leaves each state only when that state's check passes. */
export async function settleWorkspace(store: Store, name: string): Promise<Workspace | null> {
  for (;;) {
    const workspace = await store.workspaces.get(name);
    const step = workspace && CHECKS[workspace.status];
    if (!workspace || !step) return workspace;
    const reason = await step.check(store, workspace);
    const next =
      reason === null ? { status: step.next, statusReason: null } : { status: "error" as const, statusReason: reason };
    await store.workspaces.modify(name, workspace.updatedBy, () => next);
  }
}

interface Check {
  next: Workspace["status"];
  /** Why the workspace cannot leave this state; null when it can. */
  check(store: Store, workspace: Workspace): Promise<string | null>;
}

const CHECKS: Partial<Record<Workspace["status"], Check>> = {
  created: {
    next: "account_binded",
    check: async (store, { accountId }) =>
      (await store.people.getAccount(accountId)) ? null : "Its account does not exist.",
  },
  account_binded: {
    next: "account_configured",
    check: async (store, { accountId }) =>
      (await store.people.accountHasAdmin(accountId)) ? null : "Its account has no admin.",
  },
  account_configured: {
    next: "workspace_configured",
    check: async (_store, { region }) => (region ? null : "It has no region."),
  },
  workspace_configured: {
    next: "ready",
    check: async (store, { name }) =>
      (await store.people.listMembers(name)).some((member) => member.role === "admin")
        ? null
        : "Nobody administers it.",
  },
};
