/**
 * Resources that a workspace shares with others. A share names the resource by uid and the borrower by workspace, or by
 * account when the whole account may use it. An offer is a share that the borrower has yet to accept.
 */

import { uuidv7 } from "../../lib/ids.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Database, Queries, Transaction } from "../database/database.ts";
import type { ShareOfferRow, ShareRow } from "../database/schema.ts";
import { fromRow, type Resource } from "./resource.ts";
import { requireLiveWorkspace } from "./rows.ts";

export type Share = ShareRow;
export type ShareOffer = ShareOfferRow;

/** Topic of shares that end; the key is the uid of the resource. */
export const SHARE_TOPIC = "share";

/** The borrower that stands for every workspace of an account. */
export const wholeAccount = (accountId: string): string => `account:${accountId}`;

export type ResourceShares = ReturnType<typeof createShares>;

export function createShares({ database, clock }: { database: Database; clock: Clock }) {
  async function add(tx: Transaction, resource: Lent, target: string, by: string): Promise<boolean> {
    if (!target.startsWith("account:")) await requireLiveWorkspace(tx.queries, database.dialect, target);
    const inserted = await tx.queries
      .insertInto("shares")
      .values({
        uid: resource.uid,
        target,
        workspace: resource.workspace,
        created_by: by,
        created_at: clock.now(),
      })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst();
    return Number(inserted.numInsertedOrUpdatedRows ?? 0) > 0;
  }

  return {
    /** Returns false when the resource is already shared with the borrower. */
    add,

    removeIn,

    /** Removes a share or withdraws an offer; returns false when there was neither. */
    remove: (uid: string, target: string): Promise<boolean> => database.write((tx) => removeIn(tx, uid, target)),

    listOf: (uid: string): Promise<Share[]> =>
      database.read.selectFrom("shares").selectAll().where("uid", "=", uid).orderBy("created_at").execute(),

    /** Resources of a kind that these borrowers may use; with a name, only those of that name. */
    async resourcesFor(targets: readonly string[], kind: string, name: string | null): Promise<Resource[]> {
      let rows = database.read
        .selectFrom("shares as s")
        .innerJoin("resources as r", "r.uid", "s.uid")
        .selectAll("r")
        .distinct()
        .where("s.target", "in", targets)
        .where("r.kind", "=", kind)
        .where("r.deleted_at", "is", null)
        .orderBy("r.uid", "desc");
      if (name !== null) rows = rows.where("r.name", "=", name);
      return (await rows.execute()).map(fromRow);
    },

    /**
     * One open offer per resource and borrower. An expired offer is renewed; returns null while one is open. The
     * borrower need not exist, so that an offer does not tell whether it does.
     */
    async offer(tx: Transaction, resource: Lent, target: string, by: string, expiresAt: number) {
      const row: ShareOfferRow = {
        id: uuidv7(clock.now()),
        uid: resource.uid,
        target,
        workspace: resource.workspace,
        created_by: by,
        created_at: clock.now(),
        expires_at: expiresAt,
      };
      await tx.queries
        .deleteFrom("share_offers")
        .where("uid", "=", row.uid)
        .where("target", "=", target)
        .where("expires_at", "<=", clock.now())
        .execute();
      const inserted = await tx.queries
        .insertInto("share_offers")
        .values(row)
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirst();
      return Number(inserted.numInsertedOrUpdatedRows ?? 0) > 0 ? row : null;
    },

    getOffer: async (id: string): Promise<ShareOffer | null> =>
      (await database.read.selectFrom("share_offers").selectAll().where("id", "=", id).executeTakeFirst()) ?? null,

    listOffers: (by: "target" | "workspace" | "uid", value: string): Promise<ShareOffer[]> =>
      database.read.selectFrom("share_offers").selectAll().where(by, "=", value).orderBy("created_at").execute(),

    removeOffer: (id: string): Promise<boolean> => database.write(({ queries }) => removeOffer(queries, id)),

    /** Turns an offer into a share; returns false when the offer is gone. */
    async accept(tx: Transaction, { id, uid, workspace, target }: ShareOffer, by: string): Promise<boolean> {
      if (!(await removeOffer(tx.queries, id))) return false;
      await add(tx, { uid, workspace }, target, by);
      return true;
    },

    async removeOffersOf(tx: Transaction, uid: string): Promise<void> {
      await tx.queries.deleteFrom("share_offers").where("uid", "=", uid).execute();
    },
  };
}

async function removeIn({ queries, announce }: Transaction, uid: string, target: string): Promise<boolean> {
  announce({ topic: SHARE_TOPIC, key: uid });
  const shares = await queries
    .deleteFrom("shares")
    .where("uid", "=", uid)
    .where("target", "=", target)
    .executeTakeFirst();
  const offers = await queries
    .deleteFrom("share_offers")
    .where("uid", "=", uid)
    .where("target", "=", target)
    .executeTakeFirst();
  return Number(shares.numDeletedRows) + Number(offers.numDeletedRows) > 0;
}

type Lent = Pick<Resource, "uid" | "workspace">;

async function removeOffer(queries: Queries, id: string): Promise<boolean> {
  const result = await queries.deleteFrom("share_offers").where("id", "=", id).executeTakeFirst();
  return Number(result.numDeletedRows) > 0;
}

/** Removes everything that a deleted workspace lent or borrowed. */
export async function removeSharesOf(queries: Queries, workspace: string): Promise<void> {
  for (const table of ["shares", "share_offers"] as const)
    await queries
      .deleteFrom(table)
      .where((eb) => eb.or([eb("workspace", "=", workspace), eb("target", "=", workspace)]))
      .execute();
}
