import type { Migration } from "./migration.ts";

/** Credentials that end with the right that made them. Credentials from before this migration have no such end. */
export const hangingCredentials: Migration = {
  id: 20,
  name: "hanging-credentials",
  both: ["ALTER TABLE api_keys ADD COLUMN hangs_on {text}", "ALTER TABLE service_accounts ADD COLUMN hangs_on {text}"],
};
