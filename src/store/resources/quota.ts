/** The maximum number of resources of a kind in a workspace, enforced against concurrent creates. */
import { sql } from "kysely";
import { PlatformError } from "../../contract/errors.ts";
import type { Dialect, Queries } from "../database/database.ts";

/** Serializes creates of one kind in one workspace, so that each counts the resources of the one before. */
export async function takeTurn(queries: Queries, dialect: Dialect, workspace: string, kind: string): Promise<void> {
  // SQLite has one writer, so there is nothing to lock.
  if (dialect === "postgres")
    await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`quota:${workspace}/${kind}`}, 0))`.execute(queries);
}

/** Call after the row is inserted and counted; a refusal rolls back both. */
export async function requireRoom(queries: Queries, workspace: string, kind: string, quota: number): Promise<void> {
  const row = await queries
    .selectFrom("resource_counts")
    .select(({ fn }) => fn.sum<number>("n").as("n"))
    .where("workspace", "=", workspace)
    .where("kind", "=", kind)
    .executeTakeFirst();
  if (Number(row?.n ?? 0) <= quota) return;
  throw new PlatformError(
    "usage_limit_exceeded",
    `The quota of workspace '${workspace}' is ${quota} of kind ${kind}, and it is used up. Delete one, or ask the operator for more.`,
  );
}
