import type { Migration } from "./migration.ts";

/**
 * The bundle that 0.1.0 ran after `npm ci` stored authorization codes, refresh tokens, sessions and consents under an
 * empty model name. They cannot be told apart, so they are removed and people sign in again.
 */
export const namelessOauth: Migration = {
  id: 18,
  name: "nameless-oauth",
  both: ["DELETE FROM oauth_records WHERE model = ''"],
};
