/**
 * The next time of each cron trigger of a workload. The rows change in the transactions of the workload's own record.
 * The server that fires a trigger advances its time in the same transaction, so each slot fires on one server.
 */

import type { Database, Queries, Transaction } from "../database/database.ts";
import type { CronTriggerRow } from "../database/schema.ts";

export type CronTriggers = ReturnType<typeof createCronTriggers>;

export function createCronTriggers({ database }: { database: Database }) {
  return {
    /** Replaces the triggers of a workload. A trigger whose schedule did not change keeps its next time. */
    async replace({ queries }: Transaction, uid: string, wanted: readonly CronTriggerRow[]): Promise<void> {
      const known = await queries.selectFrom("cron_triggers").selectAll().where("uid", "=", uid).execute();
      const isSame = (a: CronTriggerRow, b: CronTriggerRow): boolean =>
        a.trigger_id === b.trigger_id && a.schedule === b.schedule && a.timezone === b.timezone;
      for (const row of known) {
        if (wanted.some((one) => isSame(one, row))) continue;
        await queries
          .deleteFrom("cron_triggers")
          .where("uid", "=", uid)
          .where("trigger_id", "=", row.trigger_id)
          .execute();
      }
      const fresh = wanted.filter((one) => !known.some((row) => isSame(one, row)));
      if (fresh.length > 0) await queries.insertInto("cron_triggers").values(fresh).execute();
    },

    async listDueAcrossWorkspaces(nowMs: number, limit: number): Promise<CronTriggerRow[]> {
      return database.read
        .selectFrom("cron_triggers")
        .selectAll()
        .where("next_at", "<=", nowMs)
        .orderBy("next_at")
        .limit(limit)
        .execute();
    },

    /**
     * Advances a trigger to its next time, or removes it (null). Returns false when another server has already done so.
     */
    async advance({ queries }: Transaction, row: CronTriggerRow, nextAt: number | null): Promise<boolean> {
      if (nextAt === null) {
        const gone = await queries
          .deleteFrom("cron_triggers")
          .where("uid", "=", row.uid)
          .where("trigger_id", "=", row.trigger_id)
          .where("next_at", "=", row.next_at)
          .executeTakeFirst();
        return Number(gone.numDeletedRows) > 0;
      }
      const moved = await queries
        .updateTable("cron_triggers")
        .set({ next_at: nextAt })
        .where("uid", "=", row.uid)
        .where("trigger_id", "=", row.trigger_id)
        .where("next_at", "=", row.next_at)
        .executeTakeFirst();
      return Number(moved.numUpdatedRows) > 0;
    },
  };
}

export async function removeCronTriggers(queries: Queries, uid: string): Promise<void> {
  await queries.deleteFrom("cron_triggers").where("uid", "=", uid).execute();
}
