/** Empties a workspace that is marked as deleted, page by page, so that a large one does not delay other writers. */
import type { Database, Transaction } from "../database/database.ts";
import { EXECUTION_TOPIC } from "../executions/execution.ts";
import type { Resources } from "../resources/resources.ts";

/** Rows removed per transaction, so that other writers get their turn in between. */
const PAGE = 200;
/** Executions removed per transaction. Fewer, because an execution has many tasks. */
const EXECUTIONS_PAGE = 10;

export type WorkspaceContents = ReturnType<typeof createWorkspaceContents>;

export function createWorkspaceContents({ database, resources }: { database: Database; resources: Resources }) {
  return {
    /**
     * Removes the next page of resources. Resources of a reconciled kind are marked as deleted and go once their
     * workloads have stopped. Returns whether there may be more to remove.
     */
    removeSome: (workspace: string, reconciledKinds: readonly string[], actor: string): Promise<boolean> =>
      database.write(async (tx) => {
        let rows = tx.queries
          .selectFrom("resources")
          .select(["uid", "kind", "slot"])
          .where("workspace", "=", workspace)
          .limit(PAGE);
        if (reconciledKinds.length > 0)
          rows = rows.where((eb) =>
            eb.or([
              eb("kind", "not in", reconciledKinds),
              eb("deleted_at", "is", null),
              eb("slot", "like", "~%"), // retired records have nothing running
            ]),
          );
        const page = await rows.execute();
        for (const { uid, kind, slot } of page) {
          if (!reconciledKinds.includes(kind) || slot.startsWith("~")) await resources.remove(tx, workspace, uid);
          else
            await resources.modify(tx, workspace, uid, ({ status }) => ({
              deleted: true,
              intent: true,
              actor,
              ...(status === null ? {} : { status: "DELETING" }),
              event: { type: "deleted", message: `Deleted with the workspace by ${actor}.` },
            }));
        }
        if (page.length === PAGE) return true;
        return (await removeExecutions(tx, workspace)) || (await removeDeliveries(tx, workspace));
      }),

    /** True when no resource is left that still has to stop. */
    async isEmpty(workspace: string): Promise<boolean> {
      const row = await database.read
        .selectFrom("resources")
        .select("uid")
        .where("workspace", "=", workspace)
        .limit(1)
        .executeTakeFirst();
      return row === undefined;
    },
  };
}

/** Removes a page of executions and notifies the servers that run their tasks. */
async function removeExecutions({ queries, announce }: Transaction, workspace: string): Promise<boolean> {
  const rows = await queries
    .selectFrom("executions")
    .select("id")
    .where("workspace", "=", workspace)
    .limit(EXECUTIONS_PAGE)
    .execute();
  const ids = rows.map((row) => row.id);
  if (ids.length === 0) return false;
  await queries.deleteFrom("tasks").where("execution_id", "in", ids).execute();
  await queries.deleteFrom("execution_chunks").where("execution_id", "in", ids).execute();
  await queries.deleteFrom("executions").where("id", "in", ids).execute();
  for (const id of ids) announce({ topic: EXECUTION_TOPIC, key: id });
  return true;
}

async function removeDeliveries({ queries }: Transaction, workspace: string): Promise<boolean> {
  const some = queries.selectFrom("deliveries").select("id").where("workspace", "=", workspace).limit(PAGE);
  const removed = await queries.deleteFrom("deliveries").where("id", "in", some).executeTakeFirst();
  await queries.deleteFrom("delivery_counts").where("workspace", "=", workspace).execute();
  return Number(removed.numDeletedRows) > 0;
}
