/** Workspaces: the tenants. Their names are the first part of every address and never change. */
import { notFound, PlatformError } from "../../contract/errors.ts";
import { uuidv7 } from "../../lib/ids.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { type Database, fixedQuery, type Queries, type Transaction } from "../database/database.ts";
import type { WorkspaceRow } from "../database/schema.ts";
import { removeSharesOf } from "../resources/shares.ts";
import { forgetUnverifiedIfAlone } from "./forget-person.ts";

const LIVE = fixedQuery<WorkspaceRow>("SELECT * FROM workspaces WHERE name = ? AND deleted_at IS NULL");

/** created → account_binded → account_configured → workspace_configured → ready; error from any of them. */
export type WorkspaceStatus =
  | "created"
  | "account_binded"
  | "account_configured"
  | "workspace_configured"
  | "ready"
  | "error";

export interface Workspace {
  name: string;
  id: string;
  accountId: string;
  displayName: string;
  region: string;
  labels: Record<string, string>;
  groupMappings: { groupName: string; role: string }[];
  runtime: Record<string, unknown>;
  status: WorkspaceStatus;
  statusReason: string | null;
  version: number;
  createdAt: number;
  updatedAt: number;
  createdBy: string;
  updatedBy: string;
  deletedAt: number | null;
}

export const IDENTITY_TOPIC = "identity";

export type Workspaces = ReturnType<typeof createWorkspaces>;

/** Tables that hold a workspace's data besides its resources. */
const OWNED = [
  "workspace_members",
  "service_accounts",
  "invitations",
  "resource_counts",
  "status_counts",
  "resource_links",
  "revisions",
] as const;

export function createWorkspaces({ database, clock }: { database: Database; clock: Clock }) {
  async function get(name: string): Promise<Workspace | null> {
    const row = await LIVE.first(database.read, database.dialect, [name]);
    return row ? fromRow(row) : null;
  }

  async function modify(
    name: string,
    actor: string,
    change: (current: Workspace) => Partial<Workspace>,
  ): Promise<Workspace> {
    return database.write(async (tx) => {
      const rows = tx.queries
        .selectFrom("workspaces")
        .selectAll()
        .where("name", "=", name)
        .where("deleted_at", "is", null);
      const row = await (database.dialect === "postgres" ? rows.forUpdate() : rows).executeTakeFirst();
      if (!row) throw notFound(`Workspace '${name}'`);
      const current = fromRow(row);
      const next = {
        ...current,
        ...change(current),
        version: current.version + 1,
        updatedAt: clock.now(),
        updatedBy: actor,
      };
      await tx.queries.updateTable("workspaces").set(toRow(next)).where("name", "=", name).execute();
      tx.announce({ topic: IDENTITY_TOPIC, key: name });
      return next;
    });
  }

  return {
    get,
    modify,

    async insert(
      tx: Transaction,
      draft: Pick<
        Workspace,
        "name" | "accountId" | "displayName" | "region" | "labels" | "groupMappings" | "runtime"
      > & {
        id?: string;
      },
      actor: string,
    ): Promise<Workspace> {
      const now = clock.now();
      const workspace: Workspace = {
        ...draft,
        id: draft.id ?? uuidv7(now),
        status: "created",
        statusReason: null,
        version: 1,
        createdAt: now,
        updatedAt: now,
        createdBy: actor,
        updatedBy: actor,
        deletedAt: null,
      };
      const inserted = await tx.queries
        .insertInto("workspaces")
        .values(toRow(workspace))
        .onConflict((conflict) => conflict.column("name").doNothing())
        .executeTakeFirst();
      if (Number(inserted.numInsertedOrUpdatedRows ?? 0) === 0) {
        throw new PlatformError(
          "conflict",
          `A workspace named '${draft.name}' exists already, or is still being deleted. Choose another name.`,
        );
      }
      tx.announce({ topic: IDENTITY_TOPIC, key: draft.name });
      return workspace;
    },

    /** The workspaces a person can see: those of which they are a member, and all of the accounts they administer. */
    async listFor(sub: string, limit?: number): Promise<Workspace[]> {
      const rows = database.read
        .selectFrom("workspaces as w")
        .selectAll("w")
        .where("w.deleted_at", "is", null)
        .where((eb) =>
          eb.or([
            eb("w.name", "in", eb.selectFrom("workspace_members").select("workspace").where("sub", "=", sub)),
            eb(
              "w.account_id",
              "in",
              eb.selectFrom("account_members").select("account_id").where("sub", "=", sub).where("role", "=", "admin"),
            ),
          ]),
        )
        .orderBy("w.name");
      return (await (limit === undefined ? rows : rows.limit(limit)).execute()).map(fromRow);
    },

    /** A name stays taken until a deleted workspace is completely removed. */
    async isNameTaken(name: string): Promise<boolean> {
      const row = await database.read
        .selectFrom("workspaces")
        .select("name")
        .where("name", "=", name)
        .executeTakeFirst();
      return row !== undefined;
    },

    /** Workspaces that are marked as deleted but not completely removed yet. */
    async listLeavingAcrossAccounts(): Promise<string[]> {
      const rows = await database.read
        .selectFrom("workspaces")
        .select("name")
        .where("deleted_at", "is not", null)
        .orderBy("name")
        .execute();
      return rows.map((row) => row.name);
    },

    async listAcrossAccounts(): Promise<Workspace[]> {
      return (await database.read.selectFrom("workspaces").selectAll().orderBy("name").execute()).map(fromRow);
    },

    /** Marks the workspace as deleted. From then on nothing can be created in it. */
    markDeleted: (name: string, actor: string, check: (current: Workspace) => void = () => {}) =>
      modify(name, actor, (current) => {
        check(current);
        return { deletedAt: clock.now() };
      }),

    /** Removes the workspace and everything that belongs to it. Its resources must be gone already. */
    async remove(name: string): Promise<void> {
      await database.write(async (tx) => {
        const members = await tx.queries
          .selectFrom("workspace_members")
          .select("sub")
          .where("workspace", "=", name)
          .execute();
        await removeOwned(tx.queries, name);
        for (const { sub } of members) {
          await forgetUnverifiedIfAlone(tx, sub);
          tx.announce({ topic: IDENTITY_TOPIC, key: sub });
        }
        await tx.queries.deleteFrom("workspaces").where("name", "=", name).execute();
        tx.announce({ topic: IDENTITY_TOPIC, key: name });
      });
    },
  };
}

async function removeOwned(queries: Queries, name: string): Promise<void> {
  // A person's key was only created in this workspace; it keeps working elsewhere.
  await queries
    .updateTable("api_keys")
    .set({ workspace: null })
    .where("workspace", "=", name)
    .where("owner_type", "=", "user")
    .execute();
  await queries.deleteFrom("api_keys").where("workspace", "=", name).execute();
  await removeSharesOf(queries, name);
  for (const table of OWNED) await queries.deleteFrom(table).where("workspace", "=", name).execute();
}

const fromRow = (row: WorkspaceRow): Workspace => ({
  name: row.name,
  id: row.id,
  accountId: row.account_id,
  displayName: row.display_name,
  region: row.region,
  labels: JSON.parse(row.labels) as Workspace["labels"],
  groupMappings: JSON.parse(row.group_mappings) as Workspace["groupMappings"],
  runtime: JSON.parse(row.runtime) as Workspace["runtime"],
  status: row.status as WorkspaceStatus,
  statusReason: row.status_reason,
  version: row.version,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  createdBy: row.created_by,
  updatedBy: row.updated_by,
  deletedAt: row.deleted_at,
});

const toRow = (workspace: Workspace): WorkspaceRow => ({
  name: workspace.name,
  id: workspace.id,
  account_id: workspace.accountId,
  display_name: workspace.displayName,
  region: workspace.region,
  labels: JSON.stringify(workspace.labels),
  group_mappings: JSON.stringify(workspace.groupMappings),
  runtime: JSON.stringify(workspace.runtime),
  status: workspace.status,
  status_reason: workspace.statusReason,
  version: workspace.version,
  created_at: workspace.createdAt,
  updated_at: workspace.updatedAt,
  created_by: workspace.createdBy,
  updated_by: workspace.updatedBy,
  deleted_at: workspace.deletedAt,
});
