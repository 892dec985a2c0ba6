import type { Migration } from "./migration.ts";

/** A workload has one service account, whichever server starts its first replica. */
export const workloadAccounts: Migration = {
  id: 10,
  name: "workload-accounts",
  both: ["CREATE UNIQUE INDEX service_accounts_by_workload ON service_accounts (workload) WHERE workload IS NOT NULL"],
};
