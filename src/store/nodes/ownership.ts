/** Which node owns a resource, where that changes after the create. */
import { type Database, RESOURCE_TOPIC } from "../database/database.ts";
import { fromRow, type Resource } from "../resources/resource.ts";

export function createOwnership({ database, forget }: { database: Database; forget(uid: string): void }) {
  return {
    /** Gives every resource of these kinds to the node: for a database that only this server uses. */
    async adoptAll(node: string, kinds: readonly string[]): Promise<number> {
      const rows = await database.write(({ queries }) =>
        queries
          .updateTable("resources")
          .set({ node })
          .where("kind", "in", kinds)
          .where((eb) => eb.or([eb("node", "is", null), eb("node", "<>", node)]))
          .returning("uid")
          .execute(),
      );
      for (const { uid } of rows) forget(uid);
      return rows.length;
    },

    /** Resources of these kinds without a node, which older versions made. */
    async listUnowned(kinds: readonly string[], afterUid: string, limit: number): Promise<Resource[]> {
      const rows = await database.read
        .selectFrom("resources")
        .selectAll()
        .where("kind", "in", kinds)
        .where("node", "is", null)
        .where("uid", ">", afterUid)
        .orderBy("uid")
        .limit(limit)
        .execute();
      return rows.map(fromRow);
    },

    /** Resources of these kinds on one node, retired ones left out, page by page. */
    async listOwned(node: string, kinds: readonly string[], afterUid: string, limit: number): Promise<Resource[]> {
      const rows = await database.read
        .selectFrom("resources")
        .selectAll()
        .where("node", "=", node)
        .where("kind", "in", kinds)
        .where("slot", "not like", "~%")
        .where("uid", ">", afterUid)
        .orderBy("uid")
        .limit(limit)
        .execute();
      return rows.map(fromRow);
    },

    /** How many resources of each kind every node has, retired ones left out. */
    async countOwned(): Promise<Map<string, Record<string, number>>> {
      const rows = await database.read
        .selectFrom("resources")
        .select(["node", "kind", (eb) => eb.fn.countAll<number>().as("n")])
        .where("node", "is not", null)
        .where("slot", "not like", "~%")
        .groupBy(["node", "kind"])
        .execute();
      const counts = new Map<string, Record<string, number>>();
      for (const { node, kind, n } of rows)
        counts.set(String(node), { ...counts.get(String(node)), [kind]: Number(n) });
      return counts;
    },

    /** Gives all that a node has to another node. */
    hand: (from: string, to: string): Promise<void> =>
      database.write(async ({ queries }) => {
        await queries.updateTable("resources").set({ node: to }).where("node", "=", from).execute();
      }),

    /** Gives resources without a node to this node. */
    adopt: (node: string, resources: readonly Pick<Resource, "kind" | "uid">[]): Promise<void> =>
      database.write(async (tx) => {
        if (resources.length === 0) return;
        const uids = resources.map(({ uid }) => uid);
        await tx.queries
          .updateTable("resources")
          .set({ node })
          .where("uid", "in", uids)
          .where("node", "is", null)
          .execute();
        for (const { kind, uid } of resources) tx.announce({ topic: RESOURCE_TOPIC, key: `${kind}/${uid}` });
      }),
  };
}
