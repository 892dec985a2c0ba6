/** The service account that is a workload's own identity: made by the platform, gone with the workload. */

import { randomSecret, uuidv7 } from "../../lib/ids.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Database, Transaction } from "../database/database.ts";
import { requireLiveWorkspace } from "../resources/rows.ts";
import { hashSecret } from "./keys.ts";
import { IDENTITY_TOPIC } from "./workspaces.ts";

export interface WorkloadAccount {
  workspace: string;
  /** uid of the workload. */
  workload: string;
  name: string;
  scopes: readonly string[];
}

export function createWorkloadAccounts({ database, clock }: { database: Database; clock: Clock }) {
  const find = async (workload: string): Promise<string | null> =>
    (
      await database.read
        .selectFrom("service_accounts")
        .select("client_id")
        .where("workload", "=", workload)
        .executeTakeFirst()
    )?.client_id ?? null;

  return {
    /** Returns the client id of the workload's account, and creates the account when there is none. */
    async ensure({ workspace, workload, name, scopes }: WorkloadAccount): Promise<string> {
      const known = await find(workload);
      if (known !== null) return known;
      await database.write(async (tx) => {
        await requireLiveWorkspace(tx.queries, database.dialect, workspace);
        const now = clock.now();
        await tx.queries
          .insertInto("service_accounts")
          .values({
            client_id: uuidv7(now),
            workspace,
            name,
            description: "",
            role: "member",
            // Replicas have secrets of their own; the secret of the account itself is known to nobody.
            secret_hash: hashSecret(randomSecret()),
            workload,
            scopes: JSON.stringify(scopes),
            created_at: now,
            updated_at: now,
            created_by: "platform",
            hangs_on: null,
          })
          .onConflict((conflict) => conflict.column("workload").where("workload", "is not", null).doNothing())
          .execute();
      });
      const made = await find(workload);
      if (made === null) throw new Error(`the workload ${workload} is gone`);
      return made;
    },
  };
}

/** Removes the account; its tokens stop working at once. */
export async function removeWorkloadAccount(tx: Transaction, workload: string): Promise<void> {
  const { numDeletedRows } = await tx.queries
    .deleteFrom("service_accounts")
    .where("workload", "=", workload)
    .executeTakeFirst();
  if (Number(numDeletedRows) > 0) tx.announce({ topic: IDENTITY_TOPIC, key: workload });
}
