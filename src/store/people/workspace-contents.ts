/** Empties a workspace that is marked as deleted, page by page, so that a large one holds nobody up. */
import type { Database, Transaction } from "../database/database.ts";
import { EXECUTION_TOPIC } from "../executions/execution.ts";
import type { Resources } from "../resources/resources.ts";

/** One transaction's worth: others get their turn in between. */
const PAGE = 200;
/** An execution has many tasks. */
const EXECUTIONS_PAGE = 10;

export type WorkspaceContents = ReturnType<typeof createWorkspaceContents>;

export function createWorkspaceContents({ database, resources }: { database: Database; resources: Resources }) {
  return {
    /**
     * Takes the next resources away; those of a reconciled kind are marked, and go when what runs behind them is gone.
     * Returns whether there may be more to do.
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
              eb("slot", "like", "~%"), // retired: nothing runs behind it any more
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

    /** Whether nothing is left that still has to stop. */
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

/** Whoever works on one of their tasks is told, and finds it gone. */
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
