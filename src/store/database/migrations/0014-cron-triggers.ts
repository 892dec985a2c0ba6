import type { Migration } from "./migration.ts";

/** The next time of each cron trigger, indexed so that finding the due ones does not read the others. */
export const cronTriggers: Migration = {
  id: 14,
  name: "cron-triggers",
  both: [
    `CREATE TABLE cron_triggers (uid {text} NOT NULL, trigger_id {text} NOT NULL, workspace {text} NOT NULL, schedule {text} NOT NULL,
      timezone {text} NOT NULL, next_at BIGINT NOT NULL, PRIMARY KEY (uid, trigger_id))`,
    "CREATE INDEX cron_triggers_due ON cron_triggers (next_at)",
  ],
};
