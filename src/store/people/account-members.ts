/** The members of an account. Each keeps at least one admin. A person without any account or workspace is deleted. */
import type { Role } from "../../contract/operation.ts";
import type { Database, Transaction } from "../database/database.ts";
import type { UserRow } from "../database/schema.ts";
import { forgetIfAlone } from "./forget-person.ts";
import { IDENTITY_TOPIC } from "./workspaces.ts";

export type AccountMember = UserRow & { role: Role };

export function createAccountMembers({ database }: { database: Database }) {
  const members = (accountId: string) =>
    database.read
      .selectFrom("account_members as m")
      .innerJoin("users as u", "u.sub", "m.sub")
      .where("m.account_id", "=", accountId)
      .selectAll("u")
      .select("m.role");

  /**
   * Locks the account's admins until the end of the transaction, so that the last two cannot leave at the same time.
   */
  async function leavesAnAdmin({ queries }: Transaction, accountId: string, sub: string): Promise<boolean> {
    const admins = queries
      .selectFrom("account_members")
      .select("sub")
      .where("account_id", "=", accountId)
      .where("role", "=", "admin");
    const rows = await (database.dialect === "postgres" ? admins.forUpdate() : admins).execute();
    return rows.some((row) => row.sub !== sub);
  }

  return {
    async list(accountId: string): Promise<AccountMember[]> {
      return (await members(accountId).orderBy("u.email").execute()) as AccountMember[];
    },

    async find(accountId: string, subOrEmail: string): Promise<AccountMember | null> {
      const row = await members(accountId)
        .where((eb) => eb.or([eb("u.sub", "=", subOrEmail), eb("u.email", "=", subOrEmail.toLowerCase())]))
        .executeTakeFirst();
      return (row as AccountMember | undefined) ?? null;
    },

    /** Returns false when the account would be left without an admin. */
    async setRole(accountId: string, sub: string, role: Role): Promise<boolean> {
      return database.write(async (tx) => {
        if (role !== "admin" && !(await leavesAnAdmin(tx, accountId, sub))) return false;
        await tx.queries
          .updateTable("account_members")
          .set({ role })
          .where("account_id", "=", accountId)
          .where("sub", "=", sub)
          .execute();
        tx.announce({ topic: IDENTITY_TOPIC, key: sub });
        return true;
      });
    },

    /** Removes a person from the account and its workspaces; returns false when no admin would be left. */
    async remove(accountId: string, { sub, email }: UserRow): Promise<boolean> {
      return database.write(async (tx) => {
        const { queries } = tx;
        if (!(await leavesAnAdmin(tx, accountId, sub))) return false;
        const workspaces = queries.selectFrom("workspaces").select("name").where("account_id", "=", accountId);
        await queries
          .deleteFrom("account_members")
          .where("account_id", "=", accountId)
          .where("sub", "=", sub)
          .execute();
        await queries
          .deleteFrom("workspace_members")
          .where("sub", "=", sub)
          .where("workspace", "in", workspaces)
          .execute();
        await queries
          .deleteFrom("invitations")
          .where("email", "=", email)
          .where("workspace", "in", workspaces)
          .execute();
        await forgetIfAlone(tx, sub);
        tx.announce({ topic: IDENTITY_TOPIC, key: sub });
        return true;
      });
    },
  };
}
