/** Reading resources, one or many, and waiting for them to change. */
import { sql } from "kysely";
import type { Soon } from "../../lib/soon.ts";
import { type Database, RESOURCE_TOPIC, type Transaction } from "../database/database.ts";
import type { ResourceRow } from "../database/schema.ts";
import { type ResourceChange, readChange } from "./change-key.ts";
import { fromRow, type Resource } from "./resource.ts";
import { REVISIONS_MAX, type Revision, revisionFromRow } from "./revision.ts";
import type { RowCache } from "./row-cache.ts";
import { rowBySlot, rowByUid } from "./rows.ts";
import type { ListScope } from "./search-grams.ts";
import { statusCountsIn } from "./status-counts.ts";
import { createWaiters } from "./waiters.ts";

type ResourceListener = (kind: string, uid: string) => void;

export function createResourceReads(database: Database, cache: RowCache | null) {
  const { read, dialect } = database;
  const waiters = createWaiters(database);
  /** Caches a row only when it was read synchronously: after an event-loop turn it may be stale. */
  const keep = (found: Soon<ResourceRow | undefined>): Soon<ResourceRow | undefined> => {
    if (cache && found && !(found instanceof Promise)) cache.put(found);
    return found;
  };

  // The key of a change is parsed once for all listeners.
  const listeners = new Set<ResourceListener>();
  database.onChange(({ topic, key }) => {
    if (topic !== RESOURCE_TOPIC) return;
    const slash = key.indexOf("/");
    const [kind, uid] = [key.slice(0, slash), key.slice(slash + 1)];
    for (const listener of listeners) listener(kind, uid);
  });

  async function byUid(uid: string): Promise<Resource | null> {
    const row = await (cache?.byUid(uid) ?? keep(rowByUid(read, dialect, uid)));
    return row ? fromRow(row) : null;
  }

  async function get(scope: ListScope, name: string): Promise<Resource | null> {
    const live = await (cache?.bySlot(scope, name) ?? keep(rowBySlot(read, dialect, scope, name)));
    if (live) return fromRow(live);
    const retired = await database.read
      .selectFrom("resources")
      .selectAll()
      .where("workspace", "=", scope.workspace)
      .where("kind", "=", scope.kind)
      .where("parent", "=", scope.parent)
      .where("name", "=", name)
      .where("slot", "like", "~%")
      .orderBy("uid", "desc")
      .limit(1)
      .executeTakeFirst();
    return retired ? fromRow(retired) : null;
  }

  async function getByUid(workspace: string, uid: string): Promise<Resource | null> {
    const resource = await byUid(uid);
    return resource?.workspace === workspace ? resource : null;
  }

  return {
    get,
    getByUid,

    async getByExternalId(workspace: string, kind: string, externalId: string): Promise<Resource | null> {
      const row = await database.read
        .selectFrom("resources")
        .selectAll()
        .where("workspace", "=", workspace)
        .where("kind", "=", kind)
        .where("external_id", "=", externalId)
        .where("slot", "not like", "~%")
        .where("deleted_at", "is", null)
        .orderBy("uid", "desc")
        .limit(1)
        .executeTakeFirst();
      return row ? fromRow(row) : null;
    },

    async childrenOf(workspace: string, uid: string, kind?: string): Promise<Resource[]> {
      let rows = database.read
        .selectFrom("resources")
        .selectAll()
        .where("workspace", "=", workspace)
        .where("parent", "=", uid)
        .where("slot", "not like", "~%")
        .orderBy("uid");
      if (kind) rows = rows.where("kind", "=", kind);
      return (await rows.execute()).map(fromRow);
    },

    async nameIn({ queries }: Transaction, uid: string): Promise<string | null> {
      const row = await queries.selectFrom("resources").select("name").where("uid", "=", uid).executeTakeFirst();
      return row?.name ?? null;
    },

    /** Children of a resource; call it inside a transaction that has locked the parent. */
    async childrenIn({ queries }: Transaction, uid: string, limit: number, kind?: string): Promise<Resource[]> {
      let rows = queries
        .selectFrom("resources")
        .selectAll()
        .where("parent", "=", uid)
        .where("slot", "not like", "~%")
        .limit(limit);
      if (kind) rows = rows.where("kind", "=", kind);
      return (await rows.execute()).map(fromRow);
    },

    /** Resources of one name, for kinds whose names are not unique. */
    async listNamed(workspace: string, kind: string, name: string): Promise<Resource[]> {
      const rows = await database.read
        .selectFrom("resources")
        .selectAll()
        .where("workspace", "=", workspace)
        .where("kind", "=", kind)
        .where("parent", "=", "")
        .where("name", "=", name)
        .where("slot", "not like", "~%")
        .orderBy("uid")
        .execute();
      return rows.map(fromRow);
    },

    /** Resources whose stored spec contains one of these texts. Reads every spec: for rare queries only. */
    async listWithSpecText(
      workspaces: readonly string[],
      kinds: readonly string[],
      texts: readonly string[],
      limit: number,
    ): Promise<Resource[]> {
      if (workspaces.length === 0 || kinds.length === 0) return [];
      const position = sql.raw(database.dialect === "postgres" ? "strpos" : "instr");
      const rows = await database.read
        .selectFrom("resources")
        .selectAll()
        .where("workspace", "in", workspaces)
        .where("kind", "in", kinds)
        .where("slot", "not like", "~%")
        .where((eb) => eb.or(texts.map((text) => sql<boolean>`${position}(spec, ${text}) > 0`)))
        .orderBy("uid")
        .limit(limit)
        .execute();
      return rows.map(fromRow);
    },

    /** All resources of one kind in a workspace, whatever their parent; for flat lists of nested kinds. */
    async listNested(workspace: string, kind: string, limit: number, name?: string): Promise<Resource[]> {
      let rows = database.read
        .selectFrom("resources")
        .selectAll()
        .where("workspace", "=", workspace)
        .where("kind", "=", kind)
        .where("slot", "not like", "~%")
        .orderBy("uid", "desc")
        .limit(limit);
      if (name !== undefined) rows = rows.where("name", "=", name);
      return (await rows.execute()).map(fromRow);
    },

    async revisionsOf(workspace: string, uid: string): Promise<Revision[]> {
      const rows = await database.read
        .selectFrom("revisions")
        .selectAll()
        .where("workspace", "=", workspace)
        .where("uid", "=", uid)
        .orderBy("created_at", "desc")
        .orderBy((eb) => eb.fn("length", ["revision"]), "desc")
        .orderBy("revision", "desc")
        .limit(REVISIONS_MAX)
        .execute();
      return rows.map(revisionFromRow);
    },

    async countsIn(workspace: string): Promise<Record<string, number>> {
      const rows = await database.read
        .selectFrom("resource_counts")
        .select(["kind", (eb) => eb.fn.sum<number>("n").as("n")])
        .where("workspace", "=", workspace)
        .groupBy("kind")
        .execute();
      return Object.fromEntries(rows.map((row) => [row.kind, Number(row.n)]));
    },

    statusCountsIn: (workspace: string) => statusCountsIn(database, workspace),

    /** Failed resources of these kinds, the latest failure first. */
    async listFailed(workspace: string, kinds: readonly string[], limit: number): Promise<Resource[]> {
      if (kinds.length === 0) return [];
      const rows = await database.read
        .selectFrom("resources")
        .selectAll()
        .where("workspace", "=", workspace)
        .where(sql<boolean>`status = 'FAILED'`)
        .where("kind", "in", kinds)
        .where("slot", "not like", "~%")
        .orderBy("status_at", "desc")
        .orderBy("uid", "desc")
        .limit(limit)
        .execute();
      return rows.map(fromRow);
    },

    getAcrossWorkspaces: byUid,

    /**
     * Resources that still have to be reconciled, oldest first; for the resync of the reconcile loop. With a node: only
     * those of that node and those without one.
     */
    async listUnsettledAcrossWorkspaces(
      kinds: readonly string[],
      limit: number,
      node: string | null = null,
    ): Promise<Pick<Resource, "uid" | "workspace" | "kind">[]> {
      if (kinds.length === 0) return [];
      let rows = database.read
        .selectFrom("resources")
        .select(["uid", "workspace", "kind"])
        .where("kind", "in", kinds)
        .where((eb) => eb.or([eb("observed_generation", "<", eb.ref("generation")), eb("deleted_at", "is not", null)]))
        .where("slot", "not like", "~%")
        .orderBy("uid")
        .limit(limit);
      if (node !== null) rows = rows.where((eb) => eb.or([eb("node", "is", null), eb("node", "=", node)]));
      return rows.execute();
    },

    /** The uids of a kind, page by page; with a node: only those of that node. */
    async listUidsAcrossWorkspaces(
      kind: string,
      { after, limit, node }: { after: string; limit: number; node: string | null },
    ): Promise<string[]> {
      let rows = database.read
        .selectFrom("resources")
        .select("uid")
        .where("kind", "=", kind)
        .where("uid", ">", after)
        .orderBy("uid")
        .limit(limit);
      if (node !== null) rows = rows.where("node", "=", node);
      return (await rows.execute()).map(({ uid }) => uid);
    },

    /** Every resource of a kind in order of uid, page by page; for periodic tasks. */
    async listAcrossWorkspaces(kind: string, afterUid: string, limit: number): Promise<Resource[]> {
      const rows = await database.read
        .selectFrom("resources")
        .selectAll()
        .where("kind", "=", kind)
        .where("uid", ">", afterUid)
        .orderBy("uid")
        .limit(limit)
        .execute();
      return rows.map(fromRow);
    },

    /** Retired records, page by page. */
    async listRetiredAcrossWorkspaces(kind: string, afterUid: string, limit: number): Promise<Resource[]> {
      const rows = await database.read
        .selectFrom("resources")
        .selectAll()
        .where("kind", "=", kind)
        .where("slot", "like", "~%")
        .where("uid", ">", afterUid)
        .orderBy("uid")
        .limit(limit)
        .execute();
      return rows.map(fromRow);
    },

    /**
     * Tells every change of every resource, and null when changes may have been missed: notifications of PostgreSQL were
     * lost for a while.
     */
    onEveryChangeAcrossWorkspaces: (listener: (change: ResourceChange | null) => void): (() => void) =>
      database.onChange((change) => {
        if (change.topic === "resync") listener(null);
        else if (change.topic === RESOURCE_TOPIC) {
          const told = readChange(change);
          if (told) listener(told);
        }
      }),

    onChange(listener: ResourceListener): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },

    /** True when the cached row is not marked as deleted. False also when the row is not cached. */
    isKnownToStay: (uid: string): boolean => cache?.byUid(uid)?.deleted_at === null,

    /** Waits until the resource satisfies `until` (null = it is gone). Ends with the signal's reason. */
    async waitFor(
      workspace: string,
      uid: string,
      until: (resource: Resource | null) => boolean,
      { signal }: { signal: AbortSignal },
    ): Promise<Resource | null> {
      let wake = (): void => {};
      const unsubscribe = waiters.add(uid, () => wake());
      const abort = (): void => wake();
      signal.addEventListener("abort", abort);
      try {
        for (;;) {
          const changed = new Promise<void>((resolve) => {
            wake = resolve;
          });
          signal.throwIfAborted();
          const resource = await getByUid(workspace, uid);
          if (until(resource)) return resource;
          await changed;
        }
      } finally {
        signal.removeEventListener("abort", abort);
        unsubscribe();
      }
    },
  };
}
