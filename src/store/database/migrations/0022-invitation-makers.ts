import type { Migration } from "./migration.ts";

/** The key or service account that made an invitation. Invitations from before this migration name none. */
export const invitationMakers: Migration = {
  id: 22,
  name: "invitation-makers",
  both: ["ALTER TABLE invitations ADD COLUMN made_with {text}"],
};
