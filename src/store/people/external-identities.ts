/** Links users to their identities at external identity providers. A user has at most one identity per provider. */
import type { Role } from "../../contract/operation.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Database } from "../database/database.ts";
import type { People } from "./people.ts";

export interface ExternalIdentity {
  issuer: string;
  /** The provider's permanent id of the person. */
  subject: string;
}

/** `source` of memberships that groups created; a group change removes only these. */
const DIRECTORY = "directory_sync";

export function createExternalIdentities({
  database,
  clock,
  people,
}: {
  database: Database;
  clock: Clock;
  people: People;
}) {
  return {
    async find({ issuer, subject }: ExternalIdentity): Promise<string | null> {
      const row = await database.read
        .selectFrom("external_identities")
        .select("sub")
        .where("issuer", "=", issuer)
        .where("subject", "=", subject)
        .executeTakeFirst();
      return row?.sub ?? null;
    },

    /** Returns false when the person or the identity is already linked to another one. */
    async link(identity: ExternalIdentity, sub: string): Promise<boolean> {
      const result = await database.write(({ queries }) =>
        queries
          .insertInto("external_identities")
          .values({ ...identity, sub, created_at: clock.now() })
          .onConflict((conflict) => conflict.doNothing())
          .executeTakeFirst(),
      );
      return Number(result.numInsertedOrUpdatedRows ?? 0) > 0;
    },

    /** Creates a user for an identity that has none yet, as a member of the account. */
    async create(
      identity: ExternalIdentity,
      accountId: string,
      person: { email: string; givenName: string; familyName: string },
    ): Promise<string> {
      return database.write(async (tx) => {
        const { sub } = await people.createUser(tx, { ...person, emailVerified: true });
        await people.setAccountRole(tx, accountId, sub, "member");
        await tx.queries
          .insertInto("external_identities")
          .values({ ...identity, sub, created_at: clock.now() })
          .execute();
        return sub;
      });
    },

    /** Sets the person's memberships from their groups. Memberships that no group created are left alone. */
    async syncGroups(accountId: string, sub: string, groups: ReadonlySet<string>): Promise<void> {
      await database.write(async (tx) => {
        const { queries } = tx;
        const workspaces = await queries
          .selectFrom("workspaces")
          .select(["name", "group_mappings"])
          .where("account_id", "=", accountId)
          .where("deleted_at", "is", null)
          .execute();
        const members = await queries.selectFrom("workspace_members").selectAll().where("sub", "=", sub).execute();
        for (const { name, group_mappings } of workspaces) {
          const role = roleFrom(JSON.parse(group_mappings) as GroupMapping[], groups);
          const member = members.find(({ workspace }) => workspace === name);
          if (member && member.source !== DIRECTORY) continue;
          if (role !== null) await people.setMember(tx, name, sub, role, DIRECTORY);
          else if (member) await people.removeMember(tx, name, sub);
        }
      });
    },
  };
}

interface GroupMapping {
  groupName: string;
  role: string;
}

function roleFrom(mappings: readonly GroupMapping[], groups: ReadonlySet<string>): Role | null {
  const roles = mappings.filter(({ groupName }) => groups.has(groupName)).map(({ role }) => role);
  return roles.includes("admin") ? "admin" : roles.length > 0 ? "member" : null;
}
