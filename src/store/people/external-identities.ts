/** Which person of ours somebody at another identity provider is. A person has at most one identity at each. */
import type { Role } from "../../contract/operation.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Database } from "../database/database.ts";
import type { People } from "./people.ts";

export interface ExternalIdentity {
  issuer: string;
  /** What the provider calls them, for ever. */
  subject: string;
}

/** The source of members that groups have made; only those are unmade by groups. */
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

    /** False when this person or this identity is tied to another one already. */
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

    /** A person whom only the provider knew so far, in an account. */
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

    /** Makes the person a member where a group gives them a role, and nowhere else that a group has before. */
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
