/** How many of a kind a workspace may have, held against everybody who creates at the same moment. */
import { sql } from "kysely";
import { PlatformError } from "../../contract/errors.ts";
import type { Dialect, Queries } from "../database/database.ts";

/** Creates of one kind in one workspace take turns, so that each counts what the one before has made. */
export async function takeTurn(queries: Queries, dialect: Dialect, workspace: string, kind: string): Promise<void> {
  // On SQLite the writer is alone anyway.
  if (dialect === "postgres")
    await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`quota:${workspace}/${kind}`}, 0))`.execute(queries);
}

/** After the row is in and counted; refusing takes both back. */
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
