import type { Migration } from "./migration.ts";

/** State of the authorization server between two steps of a flow; see oauth-records.ts. */
export const oauth: Migration = {
  id: 6,
  name: "oauth",
  both: [
    `CREATE TABLE oauth_records (model {text} NOT NULL, id {text} NOT NULL, sealed_payload {text} NOT NULL, grant_id {text}, uid {text},
      user_code {text}, subject {text}, created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL, consumed_at BIGINT, PRIMARY KEY (model, id))`,
    "CREATE INDEX oauth_records_by_grant ON oauth_records (grant_id) WHERE grant_id IS NOT NULL",
    "CREATE INDEX oauth_records_by_uid ON oauth_records (uid) WHERE uid IS NOT NULL",
    "CREATE INDEX oauth_records_by_user_code ON oauth_records (user_code) WHERE user_code IS NOT NULL",
    "CREATE INDEX oauth_records_by_subject ON oauth_records (subject, model) WHERE subject IS NOT NULL",
    "CREATE INDEX oauth_records_by_expiry ON oauth_records (expires_at)",
  ],
};
