/**
 * When each cron trigger of a workload fires next. Rows follow the workload's own record, in its transactions; whoever
 * fires one moves its time on in the same step, so one slot is fired by one server.
 */

import type { Database, Queries, Transaction } from "../database/database.ts";
import type { CronTriggerRow } from "../database/schema.ts";

export type CronTriggers = ReturnType<typeof createCronTriggers>;

export function createCronTriggers({ database }: { database: Database }) {
  return {
    /** Makes the triggers of a workload these; one whose times did not change keeps its next one. */
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

    /** Moves a trigger on to its next time, or lets it go; false when somebody else has done so. */
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
