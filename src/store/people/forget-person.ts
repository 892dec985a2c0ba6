/** People whom nothing holds any more, and people whom somebody takes over. */
import type { Transaction } from "../database/database.ts";

/** Deletes a person without any account or workspace, together with their keys and sessions. */
export async function forgetIfAlone(tx: Transaction, sub: string): Promise<void> {
  if (!(await belongsNowhere(tx, sub))) return;
  await endAccess(tx, sub);
  await tx.queries.deleteFrom("external_identities").where("sub", "=", sub).execute();
  await tx.queries.deleteFrom("users").where("sub", "=", sub).execute();
}

/**
 * The same for a person whose address nobody has verified: whoever wrote the address down must not keep it from its
 * owner for ever.
 */
export async function forgetUnverifiedIfAlone(tx: Transaction, sub: string): Promise<void> {
  const person = await tx.queries
    .selectFrom("users")
    .select("email_verified")
    .where("sub", "=", sub)
    .executeTakeFirst();
  if (person?.email_verified === 0) await forgetIfAlone(tx, sub);
}

/**
 * Ends the password, keys and sessions of a person whom only workspaces of this account know, with an address that
 * nobody has verified: whoever invited them may have opened the link. Returns false for every other person.
 */
export async function takeOverGuest(tx: Transaction, accountId: string, sub: string): Promise<boolean> {
  const { queries } = tx;
  const isElsewhere = await queries
    .selectFrom("workspace_members as m")
    .innerJoin("workspaces as w", "w.name", "m.workspace")
    .select("m.sub")
    .where("m.sub", "=", sub)
    .where("w.account_id", "!=", accountId)
    .executeTakeFirst();
  const account = await queries.selectFrom("account_members").select("sub").where("sub", "=", sub).executeTakeFirst();
  if (isElsewhere || account) return false;
  const taken = await queries
    .updateTable("users")
    .set({ password_hash: null })
    .where("sub", "=", sub)
    .where("email_verified", "=", 0)
    .executeTakeFirst();
  if (Number(taken.numUpdatedRows) === 0) return false;
  await endAccess(tx, sub);
  return true;
}

async function belongsNowhere({ queries }: Transaction, sub: string): Promise<boolean> {
  const account = await queries.selectFrom("account_members").select("sub").where("sub", "=", sub).executeTakeFirst();
  const workspace = await queries
    .selectFrom("workspace_members")
    .select("sub")
    .where("sub", "=", sub)
    .executeTakeFirst();
  return !account && !workspace;
}

async function endAccess({ queries }: Transaction, sub: string): Promise<void> {
  await queries.deleteFrom("api_keys").where("owner_type", "=", "user").where("owner", "=", sub).execute();
  await queries.deleteFrom("oauth_records").where("subject", "=", sub).execute();
}
