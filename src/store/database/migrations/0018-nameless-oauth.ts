import type { Migration } from "./migration.ts";

/**
 * The bundle that 0.1.0 ran after `npm ci` kept authorization codes, refresh tokens, sessions and consents under an
 * empty model name, where one was taken for the other. None of them can be told apart, so people sign in again.
 */
export const namelessOauth: Migration = {
  id: 18,
  name: "nameless-oauth",
  both: ["DELETE FROM oauth_records WHERE model = ''"],
};
