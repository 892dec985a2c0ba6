/** Accounts, users, and the role of each user in accounts and workspaces. */
import { sql } from "kysely";
import type { Right } from "../../contract/caller.ts";
import type { Role } from "../../contract/operation.ts";
import { uuidv7 } from "../../lib/ids.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Database, Queries, Transaction } from "../database/database.ts";
import type { InvitationRow, UserRow } from "../database/schema.ts";
import { requireLiveWorkspace } from "../resources/rows.ts";
import { forgetUnverifiedIfAlone, takeOverGuest } from "./forget-person.ts";
import { IDENTITY_TOPIC } from "./workspaces.ts";

export interface Account {
  id: string;
  name: string;
  createdAt: number;
}

export interface Member {
  sub: string;
  email: string;
  givenName: string;
  familyName: string;
  emailVerified: boolean;
  role: Role;
  source: string;
}

export type User = UserRow;
export type Invitation = InvitationRow;

export interface Inviter {
  invitedBy: string;
  madeWith: Right | null;
}

export type People = ReturnType<typeof createPeople>;

export function createPeople({ database, clock }: { database: Database; clock: Clock }) {
  const touched = (tx: Transaction, key: string): void => tx.announce({ topic: IDENTITY_TOPIC, key });

  async function setMember(
    tx: Transaction,
    workspace: string,
    sub: string,
    role: Role,
    source = "invitation",
  ): Promise<void> {
    await tx.queries
      .insertInto("workspace_members")
      .values({ workspace, sub, role, source, created_at: clock.now() })
      .onConflict((conflict) => conflict.columns(["workspace", "sub"]).doUpdateSet({ role }))
      .execute();
    touched(tx, sub);
  }

  async function removeMember(tx: Transaction, workspace: string, sub: string): Promise<void> {
    await tx.queries
      .deleteFrom("workspace_members")
      .where("workspace", "=", workspace)
      .where("sub", "=", sub)
      .execute();
    touched(tx, sub);
  }

  async function createUser(
    tx: Transaction,
    user: { email: string; givenName?: string; familyName?: string; emailVerified?: boolean },
  ): Promise<User> {
    const row: UserRow = {
      sub: uuidv7(clock.now()),
      email: user.email.toLowerCase(),
      given_name: user.givenName ?? "",
      family_name: user.familyName ?? "",
      password_hash: null,
      email_verified: user.emailVerified ? 1 : 0,
      created_at: clock.now(),
    };
    await tx.queries.insertInto("users").values(row).execute();
    return row;
  }

  /**
   * Whether whoever made an invitation could still make it: an admin of the workspace, without having left it since, or
   * of its account; a service account that is an admin. Whether the key has ended is looked up with its other rights.
   */
  async function mayInvite(
    queries: Queries,
    { workspace, invited_by: by, created_at: at, made_with }: Invitation,
  ): Promise<boolean> {
    const machine = made_with === null ? null : await machineBehind(queries, made_with);
    if (machine) return machine.workspace === workspace && machine.role === "admin";
    // An older version kept no more than the name of a service account.
    if (!by.includes("@")) return made_with === null;
    const [member, owner] = [
      await queries
        .selectFrom("workspace_members as m")
        .innerJoin("users as u", "u.sub", "m.sub")
        .select("m.role")
        .where("m.workspace", "=", workspace)
        .where("u.email", "=", by.toLowerCase())
        .where("m.created_at", "<=", at)
        .executeTakeFirst(),
      await queries
        .selectFrom("account_members as a")
        .innerJoin("users as u", "u.sub", "a.sub")
        .innerJoin("workspaces as w", "w.account_id", "a.account_id")
        .select("a.role")
        .where("w.name", "=", workspace)
        .where("u.email", "=", by.toLowerCase())
        .executeTakeFirst(),
    ];
    return member?.role === "admin" || owner?.role === "admin";
  }

  async function accept(tx: Transaction, id: string, sub: string): Promise<Invitation | null> {
    const row = await tx.queries
      .deleteFrom("invitations")
      .where("id", "=", id)
      .where("expires_at", ">", clock.now())
      .returningAll()
      .executeTakeFirst();
    if (!row || !(await mayInvite(tx.queries, row))) return null;
    await requireLiveWorkspace(tx.queries, database.dialect, row.workspace);
    const member = await tx.queries
      .selectFrom("workspace_members")
      .select("role")
      .where("workspace", "=", row.workspace)
      .where("sub", "=", sub)
      .executeTakeFirst();
    // A person who has become an admin in the meantime stays one.
    if (member?.role !== "admin") await setMember(tx, row.workspace, sub, row.role as Role);
    return row;
  }

  return {
    setMember,
    removeMember,
    createUser,

    async createAccount(tx: Transaction, name: string): Promise<Account> {
      const account = { id: uuidv7(clock.now()), name, created_at: clock.now() };
      await tx.queries.insertInto("accounts").values(account).execute();
      return { id: account.id, name, createdAt: account.created_at };
    },

    async getAccount(id: string): Promise<Account | null> {
      const row = await database.read.selectFrom("accounts").selectAll().where("id", "=", id).executeTakeFirst();
      return row ? { id: row.id, name: row.name, createdAt: row.created_at } : null;
    },

    async listAccountsAcrossUsers(): Promise<Account[]> {
      const rows = await database.read.selectFrom("accounts").selectAll().orderBy("created_at").execute();
      return rows.map((row) => ({ id: row.id, name: row.name, createdAt: row.created_at }));
    },

    /** The accounts of a person with their role in each. */
    async accountsOf(sub: string): Promise<(Account & { role: Role })[]> {
      const rows = await database.read
        .selectFrom("account_members as m")
        .innerJoin("accounts as a", "a.id", "m.account_id")
        .select(["a.id", "a.name", "a.created_at", "m.role"])
        .where("m.sub", "=", sub)
        .orderBy("a.created_at")
        .execute();
      return rows.map((row) => ({ id: row.id, name: row.name, createdAt: row.created_at, role: row.role as Role }));
    },

    async accountHasAdmin(accountId: string): Promise<boolean> {
      const row = await database.read
        .selectFrom("account_members")
        .select("sub")
        .where("account_id", "=", accountId)
        .where("role", "=", "admin")
        .limit(1)
        .executeTakeFirst();
      return row !== undefined;
    },

    async setAccountRole(tx: Transaction, accountId: string, sub: string, role: Role): Promise<void> {
      await tx.queries
        .insertInto("account_members")
        .values({ account_id: accountId, sub, role })
        .onConflict((conflict) => conflict.columns(["account_id", "sub"]).doUpdateSet({ role }))
        .execute();
      touched(tx, sub);
    },

    async takeOverGuest(tx: Transaction, accountId: string, sub: string): Promise<boolean> {
      touched(tx, sub);
      return takeOverGuest(tx, accountId, sub);
    },

    async getUser(subOrEmail: string): Promise<User | null> {
      const row = await database.read
        .selectFrom("users")
        .selectAll()
        .where((eb) => eb.or([eb("sub", "=", subOrEmail), eb("email", "=", subOrEmail.toLowerCase())]))
        .executeTakeFirst();
      return row ?? null;
    },

    /** `replaced` is the hash that must still be there; returns false when another one is. */
    async setPassword(sub: string, passwordHash: string, replaced?: string | null): Promise<boolean> {
      const result = await database.write(({ queries }) => {
        const person = queries.updateTable("users").set({ password_hash: passwordHash }).where("sub", "=", sub);
        if (replaced === undefined) return person.executeTakeFirst();
        return person.where("password_hash", replaced === null ? "is" : "=", replaced).executeTakeFirst();
      });
      return Number(result.numUpdatedRows) > 0;
    },

    /** Records whether the person has proved that the email address is theirs. */
    async setEmailVerified(sub: string, isVerified: boolean): Promise<void> {
      await database.write(({ queries }) =>
        queries
          .updateTable("users")
          .set({ email_verified: isVerified ? 1 : 0 })
          .where("sub", "=", sub)
          .execute(),
      );
    },

    async roleIn(workspace: string, sub: string): Promise<Role | null> {
      const row = await database.read
        .selectFrom("workspace_members")
        .select("role")
        .where("workspace", "=", workspace)
        .where("sub", "=", sub)
        .executeTakeFirst();
      return (row?.role as Role | undefined) ?? null;
    },

    /** The person's roles in these workspaces, for those that the person is a member of. */
    async rolesIn(workspaces: readonly string[], sub: string): Promise<Map<string, Role>> {
      if (workspaces.length === 0) return new Map();
      const rows = await database.read
        .selectFrom("workspace_members")
        .select(["workspace", "role"])
        .where("sub", "=", sub)
        .where("workspace", "in", workspaces)
        .execute();
      return new Map(rows.map(({ workspace, role }) => [workspace, role as Role]));
    },

    /** When the person became a member of the workspace; null for a non-member. */
    async memberSince(workspace: string, sub: string): Promise<number | null> {
      const row = await database.read
        .selectFrom("workspace_members")
        .select("created_at")
        .where("workspace", "=", workspace)
        .where("sub", "=", sub)
        .executeTakeFirst();
      return row?.created_at ?? null;
    },

    async listMembers(workspace: string): Promise<Member[]> {
      const rows = await database.read
        .selectFrom("workspace_members as m")
        .innerJoin("users as u", "u.sub", "m.sub")
        .where("m.workspace", "=", workspace)
        .select(["u.sub", "u.email", "u.given_name", "u.family_name", "u.email_verified", "m.role", "m.source"])
        .orderBy("u.email")
        .execute();
      return rows.map((row) => ({
        sub: row.sub,
        email: row.email,
        givenName: row.given_name,
        familyName: row.family_name,
        emailVerified: row.email_verified === 1,
        role: row.role as Role,
        source: row.source,
      }));
    },

    /** Changes or removes (role null) a member; false when that would leave the workspace without an admin. */
    async changeMember(workspace: string, sub: string, role: Role | null): Promise<boolean> {
      return database.write(async (tx) => {
        if (role !== "admin") {
          const admins = tx.queries
            .selectFrom("workspace_members")
            .select("sub")
            .where("workspace", "=", workspace)
            .where("role", "=", "admin");
          const others = (await (database.dialect === "postgres" ? admins.forUpdate() : admins).execute()).filter(
            (row) => row.sub !== sub,
          );
          if (others.length === 0) return false;
        }
        if (role) await setMember(tx, workspace, sub, role);
        else {
          await removeMember(tx, workspace, sub);
          await forgetUnverifiedIfAlone(tx, sub);
        }
        return true;
      });
    },

    /** One open invitation per address and workspace; inviting again renews it. */
    async invite(
      workspace: string,
      email: string,
      role: Role,
      { invitedBy, madeWith }: Inviter,
      expiresAt: number,
    ): Promise<Invitation> {
      const row: InvitationRow = {
        id: uuidv7(clock.now()),
        workspace,
        email: email.toLowerCase(),
        role,
        invited_by: invitedBy,
        made_with: madeWith,
        created_at: clock.now(),
        expires_at: expiresAt,
      };
      return database.write(async (tx) => {
        await requireLiveWorkspace(tx.queries, database.dialect, workspace);
        await tx.queries
          .insertInto("invitations")
          .values(row)
          .onConflict((conflict) =>
            conflict.columns(["workspace", "email"]).doUpdateSet({
              role,
              invited_by: invitedBy,
              made_with: madeWith,
              created_at: row.created_at,
              expires_at: expiresAt,
              id: row.id,
            }),
          )
          .execute();
        return row;
      });
    },

    async listInvitations(filter: { workspace?: string; email?: string }): Promise<Invitation[]> {
      let rows = database.read.selectFrom("invitations").selectAll().orderBy("created_at");
      if (filter.workspace !== undefined) rows = rows.where("workspace", "=", filter.workspace);
      if (filter.email !== undefined) rows = rows.where("email", "=", filter.email.toLowerCase());
      return rows.execute();
    },

    async getInvitation(id: string): Promise<Invitation | null> {
      return (
        (await database.read.selectFrom("invitations").selectAll().where("id", "=", id).executeTakeFirst()) ?? null
      );
    },

    /** Its maker could still make it; see mayInvite. */
    invitationStands: (invitation: Invitation): Promise<boolean> => mayInvite(database.read, invitation),

    async removeInvitation(id: string): Promise<boolean> {
      return database.write(async (tx) => {
        const result = await tx.queries.deleteFrom("invitations").where("id", "=", id).executeTakeFirst();
        return Number(result.numDeletedRows) > 0;
      });
    },

    /**
     * Makes the invited an admin. The invitation is that of the person who says so, and gets another id: whoever has a
     * link to it was given one for less.
     */
    async raiseInvitation(id: string, raisedBy: Inviter, expiresAt: number): Promise<Invitation | null> {
      const now = clock.now();
      const by = { invited_by: raisedBy.invitedBy, made_with: raisedBy.madeWith };
      const raised = { id: uuidv7(now), role: "admin", ...by, created_at: now, expires_at: expiresAt };
      const row = await database.write(({ queries }) =>
        queries.updateTable("invitations").set(raised).where("id", "=", id).returningAll().executeTakeFirst(),
      );
      return row ?? null;
    },

    /** Changes the role of an invitation. Links to the invitation stay valid. */
    async changeInvitedRole(id: string, role: Role): Promise<boolean> {
      const result = await database.write(({ queries }) =>
        queries.updateTable("invitations").set({ role }).where("id", "=", id).executeTakeFirst(),
      );
      return Number(result.numUpdatedRows) > 0;
    },

    /** Takes the invitation and creates the membership in one transaction; null when it is gone or expired. */
    async acceptInvitation(id: string, sub: string): Promise<Invitation | null> {
      return database.write((tx) => accept(tx, id, sub));
    },

    /**
     * Like acceptInvitation, but also creates the user, with this password, in the same transaction. Null when the
     * invitation is gone or a user with its address exists by now.
     */
    async acceptAsNewPerson(id: string, email: string, passwordHash: string): Promise<User | null> {
      return database
        .write(async (tx) => {
          const user = await createUser(tx, { email });
          await tx.queries
            .updateTable("users")
            .set({ password_hash: passwordHash })
            .where("sub", "=", user.sub)
            .execute();
          const accepted = await accept(tx, id, user.sub);
          if (accepted?.email !== user.email) throw new NotInvited();
          return user;
        })
        .catch(async (error: unknown) => {
          const isTaken = await database.read
            .selectFrom("users")
            .select("sub")
            .where("email", "=", email.toLowerCase())
            .executeTakeFirst();
          if (error instanceof NotInvited || isTaken) return null;
          throw error;
        });
    },

    async countUsers(): Promise<number> {
      const row = await database.read.selectFrom("users").select(sql<number>`count(*)`.as("n")).executeTakeFirst();
      return Number(row?.n ?? 0);
    },
  };
}

/** The service account that a right belongs to; undefined for a person's key, and for what is gone. */
async function machineBehind(queries: Queries, right: Right): Promise<{ workspace: string; role: string } | undefined> {
  const [sort, id = ""] = right.split(":");
  const accounts = queries.selectFrom("service_accounts as s").select(["s.workspace", "s.role"]);
  return sort === "account"
    ? accounts.where("s.client_id", "=", id).executeTakeFirst()
    : accounts.innerJoin("api_keys as k", "k.owner", "s.client_id").where("k.id", "=", id).executeTakeFirst();
}

/** Rolls back the transaction that found the invitation gone. */
class NotInvited extends Error {}
