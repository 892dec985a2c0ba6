/**
 * The one table of resources: every kind, every workspace. The workspace is the first argument and never optional;
 * what crosses workspaces says so in its name.
 */
import { sql } from "kysely";
import type { CursorCodec } from "../contract/cursor.ts";
import { notFound, PlatformError } from "../contract/errors.ts";
import type { Event } from "../contract/fields.ts";
import type { ListQuery } from "../contract/list-query.ts";
import { type Clock, toIso } from "../lib/clock.ts";
import { timeOfUid } from "../lib/ids.ts";
import type { SealedBox } from "../lib/sealed-box.ts";
import type { Change, Database, Queries, Transaction } from "./database.ts";
import { fromRow, type Metadata, type Resource, rowidOf } from "./resource.ts";
import { listResources, type Page } from "./resource-list.ts";
import { REVISIONS_MAX, type Revision, revisionFromRow } from "./revision.ts";
import type { ResourceRow } from "./schema.ts";
import { gramsOf, type ListScope, searchText } from "./search-grams.ts";

/** Old events make room for new ones; the latest tell why a resource is as it is. */
export const EVENTS_MAX = 50;
export const RESOURCE_TOPIC = "resource";

export interface NewEvent {
  type: string;
  message: string;
  status?: string | undefined;
  revision?: string | undefined;
}

export interface Draft extends ListScope {
  uid: string;
  name: string;
  /** Where the name need not be unique (preview tokens), the slot is something that is. */
  slot?: string;
  metadata: Metadata;
  spec: Record<string, unknown>;
  secrets: Record<string, string>;
  state: Record<string, unknown>;
  status: string | null;
  events: NewEvent[];
  /** Keep this spec as a revision. */
  revision: boolean;
  actor: string;
  /** Nothing has to act on this resource: it is as intended from the start. */
  settled: boolean;
}

export interface Modification {
  metadata?: Metadata;
  spec?: Record<string, unknown>;
  secrets?: Record<string, string>;
  state?: Record<string, unknown>;
  status?: string | null;
  event?: NewEvent;
  revision?: boolean;
  actor?: string;
  deleted?: true;
  /** Gives the name free and keeps the record to be looked at. */
  retire?: true;
  /** The intent changed: somebody has to act on it. */
  intent?: boolean;
  observedGeneration?: number;
}

export type Created = { outcome: "created"; resource: Resource } | { outcome: "exists"; resource: Resource };

export interface ResourcesDeps {
  database: Database;
  clock: Clock;
  box: SealedBox;
  cursors: CursorCodec;
}

export type Resources = ReturnType<typeof createResources>;

export function createResources({ database, clock, box, cursors }: ResourcesDeps) {
  const seal = (uid: string, secrets: Record<string, string>): string | null =>
    Object.keys(secrets).length === 0 ? null : box.seal(JSON.stringify(secrets), uid);

  const secretsOf = (resource: Pick<Resource, "uid" | "sealedSecrets">): Record<string, string> =>
    resource.sealedSecrets === null
      ? {}
      : (JSON.parse(box.open(resource.sealedSecrets, resource.uid)) as Record<string, string>);

  const toEvent = (event: NewEvent, status: string | null): Event => ({
    type: event.type,
    status: event.status ?? status ?? "",
    message: event.message,
    time: toIso(clock.now()),
    ...(event.revision ? { revision: event.revision } : {}),
  });

  async function insert(tx: Transaction, draft: Draft): Promise<Created> {
    await requireLiveParents(tx.queries, database.dialect, draft);
    const now = timeOfUid(draft.uid);
    const row: ResourceRow = {
      id: database.dialect === "sqlite" ? rowidOf(draft.uid) : null,
      uid: draft.uid,
      workspace: draft.workspace,
      kind: draft.kind,
      parent: draft.parent,
      name: draft.name,
      slot: draft.slot ?? draft.name,
      external_id: draft.metadata.externalId || null,
      status: draft.status,
      generation: 1,
      observed_generation: draft.settled ? 1 : 0,
      version: 1,
      created_at: now,
      updated_at: now,
      deleted_at: null,
      created_by: draft.actor,
      updated_by: draft.actor,
      metadata: JSON.stringify(draft.metadata),
      spec: JSON.stringify(draft.spec),
      secrets: seal(draft.uid, draft.secrets),
      state: JSON.stringify(draft.state),
      events: JSON.stringify(draft.events.map((event) => toEvent(event, draft.status))),
      search: searchText({ name: draft.name, ...draft.metadata }),
    };
    const inserted = await tx.queries
      .insertInto("resources")
      .values(row)
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst();
    if (Number(inserted.numInsertedOrUpdatedRows ?? 0) === 0) {
      const existing = await bySlot(tx.queries, draft, row.slot);
      if (!existing)
        throw new PlatformError("conflict", `${draft.kind} '${draft.name}' is being replaced right now. Try again.`);
      return { outcome: "exists", resource: existing };
    }
    await indexGrams(tx.queries, database.dialect, draft.uid, gramsOf(row.search, draft));
    await count(tx.queries, draft, 1);
    if (draft.revision) await keepRevision(tx.queries, row, draft.actor, now);
    tx.announce(changeOf(draft));
    return { outcome: "created", resource: fromRow(row) };
  }

  async function modify(
    tx: Transaction,
    workspace: string,
    uid: string,
    decide: (current: Resource) => Modification | null,
  ): Promise<Resource | null> {
    const row = await lockRow(tx.queries, database.dialect, workspace, uid);
    if (!row) return null;
    const current = fromRow(row);
    const change = decide(current);
    if (!change) return current;
    const now = clock.now();
    const metadata = change.metadata ?? current.metadata;
    const status = change.status === undefined ? current.status : change.status;
    const next: ResourceRow = {
      ...row,
      status,
      metadata: JSON.stringify(metadata),
      external_id: metadata.externalId || null,
      spec: change.spec ? JSON.stringify(change.spec) : row.spec,
      secrets: change.secrets ? seal(uid, change.secrets) : row.secrets,
      state: change.state ? JSON.stringify(change.state) : row.state,
      events: change.event
        ? JSON.stringify([...current.events, toEvent(change.event, status)].slice(-EVENTS_MAX))
        : row.events,
      generation: row.generation + (change.intent ? 1 : 0),
      observed_generation: change.observedGeneration ?? row.observed_generation,
      version: row.version + 1,
      updated_at: change.actor ? now : row.updated_at,
      updated_by: change.actor ?? row.updated_by,
      deleted_at: change.deleted ? (row.deleted_at ?? now) : row.deleted_at,
      slot: change.retire ? `~${uid}` : row.slot,
      search: searchText({ name: row.name, ...metadata }),
    };
    const { id: _id, uid: _uid, ...set } = next;
    await tx.queries.updateTable("resources").set(set).where("uid", "=", uid).execute();
    if (next.search !== row.search) await indexGrams(tx.queries, database.dialect, uid, gramsOf(next.search, current));
    if (change.retire && !current.retired) await count(tx.queries, current, -1);
    if (change.revision) await keepRevision(tx.queries, next, change.actor ?? row.updated_by, now);
    tx.announce(changeOf(current));
    return fromRow(next);
  }

  async function remove(tx: Transaction, workspace: string, uid: string): Promise<boolean> {
    const row = await lockRow(tx.queries, database.dialect, workspace, uid);
    if (!row) return false;
    const children = await tx.queries.selectFrom("resources").select("uid").where("parent", "=", uid).execute();
    for (const child of children) await remove(tx, workspace, child.uid);
    await tx.queries.deleteFrom("resources").where("uid", "=", uid).execute();
    await tx.queries.deleteFrom("revisions").where("uid", "=", uid).execute();
    if (database.dialect === "sqlite")
      await sql`DELETE FROM resource_grams WHERE rowid = ${rowidOf(uid)}`.execute(tx.queries);
    if (!row.slot.startsWith("~")) await count(tx.queries, row, -1);
    tx.announce(changeOf(row));
    return true;
  }

  async function get(scope: ListScope, name: string): Promise<Resource | null> {
    const live = await bySlot(database.read, scope, name);
    if (live) return live;
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
    const row = await database.read
      .selectFrom("resources")
      .selectAll()
      .where("uid", "=", uid)
      .where("workspace", "=", workspace)
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  return {
    insert,
    modify,
    remove,
    secretsOf,
    get,
    getByUid,
    create: (draft: Draft) => database.write((tx) => insert(tx, draft)),
    update: (workspace: string, uid: string, decide: (current: Resource) => Modification | null) =>
      database.write((tx) => modify(tx, workspace, uid, decide)),
    delete: (workspace: string, uid: string) => database.write((tx) => remove(tx, workspace, uid)),
    list: (scope: ListScope, query: ListQuery): Promise<Page> =>
      listResources({ database, cursors, now: () => clock.now() }, scope, query),

    async getByExternalId(workspace: string, kind: string, externalId: string): Promise<Resource | null> {
      const row = await database.read
        .selectFrom("resources")
        .selectAll()
        .where("workspace", "=", workspace)
        .where("kind", "=", kind)
        .where("external_id", "=", externalId)
        .where("slot", "not like", "~%")
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

    /** Inside a transaction that has locked the parent. */
    async childrenIn({ queries }: Transaction, uid: string, limit: number): Promise<Resource[]> {
      const rows = await queries
        .selectFrom("resources")
        .selectAll()
        .where("parent", "=", uid)
        .where("slot", "not like", "~%")
        .limit(limit)
        .execute();
      return rows.map(fromRow);
    },

    /** All of one kind in a workspace, whatever contains them; for flat lists of nested kinds. */
    async listNested(workspace: string, kind: string, limit: number): Promise<Resource[]> {
      const rows = await database.read
        .selectFrom("resources")
        .selectAll()
        .where("workspace", "=", workspace)
        .where("kind", "=", kind)
        .where("slot", "not like", "~%")
        .orderBy("uid", "desc")
        .limit(limit)
        .execute();
      return rows.map(fromRow);
    },

    async revisionsOf(workspace: string, uid: string): Promise<Revision[]> {
      const rows = await database.read
        .selectFrom("revisions")
        .selectAll()
        .where("workspace", "=", workspace)
        .where("uid", "=", uid)
        .orderBy("created_at", "desc")
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

    async getAcrossWorkspaces(uid: string): Promise<Resource | null> {
      const row = await database.read.selectFrom("resources").selectAll().where("uid", "=", uid).executeTakeFirst();
      return row ? fromRow(row) : null;
    },

    /** What still has to be acted on, oldest first: the resync of the reconcile loop. */
    async listUnsettledAcrossWorkspaces(
      kinds: readonly string[],
      limit: number,
    ): Promise<Pick<Resource, "uid" | "workspace" | "kind">[]> {
      if (kinds.length === 0) return [];
      return database.read
        .selectFrom("resources")
        .select(["uid", "workspace", "kind"])
        .where("kind", "in", kinds)
        .where((eb) => eb.or([eb("observed_generation", "<", eb.ref("generation")), eb("deleted_at", "is not", null)]))
        .where("slot", "not like", "~%")
        .orderBy("uid")
        .limit(limit)
        .execute();
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

    onChange(listener: (kind: string, uid: string) => void): () => void {
      return database.onChange(({ topic, key }) => {
        if (topic !== RESOURCE_TOPIC) return;
        const [kind = "", uid = ""] = key.split("/");
        listener(kind, uid);
      });
    },

    /** Waits until the resource satisfies `until` (null = it is gone). Ends with the signal's reason. */
    async waitFor(
      workspace: string,
      uid: string,
      until: (resource: Resource | null) => boolean,
      { signal }: { signal: AbortSignal },
    ): Promise<Resource | null> {
      let wake = (): void => {};
      const unsubscribe = database.onChange(({ topic, key }) => {
        if (topic === "resync" || key.endsWith(uid)) wake();
      });
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

const changeOf = ({ kind, uid }: { kind: string; uid: string }): Change => ({
  topic: RESOURCE_TOPIC,
  key: `${kind}/${uid}`,
});

async function bySlot(
  queries: Queries,
  { workspace, kind, parent }: ListScope,
  slot: string,
): Promise<Resource | null> {
  const row = await queries
    .selectFrom("resources")
    .selectAll()
    .where("workspace", "=", workspace)
    .where("kind", "=", kind)
    .where("parent", "=", parent)
    .where("slot", "=", slot)
    .executeTakeFirst();
  return row ? fromRow(row) : null;
}

async function lockRow(
  queries: Queries,
  dialect: Database["dialect"],
  workspace: string,
  uid: string,
): Promise<ResourceRow | undefined> {
  const rows = queries.selectFrom("resources").selectAll().where("uid", "=", uid).where("workspace", "=", workspace);
  // On SQLite the writer is alone anyway.
  return (dialect === "postgres" ? rows.forUpdate() : rows).executeTakeFirst() as Promise<ResourceRow | undefined>;
}

/** Nothing is created in a workspace or below a parent that is going away. */
async function requireLiveParents(
  queries: Queries,
  dialect: Database["dialect"],
  { workspace, parent }: ListScope,
): Promise<void> {
  const space = queries
    .selectFrom("workspaces")
    .select("name")
    .where("name", "=", workspace)
    .where("deleted_at", "is", null);
  if (!(await (dialect === "postgres" ? space.forShare() : space).executeTakeFirst()))
    throw notFound(`Workspace '${workspace}'`);
  if (parent === "") return;
  const container = queries
    .selectFrom("resources")
    .select("uid")
    .where("uid", "=", parent)
    .where("workspace", "=", workspace)
    .where("deleted_at", "is", null);
  if (!(await (dialect === "postgres" ? container.forShare() : container).executeTakeFirst()))
    throw notFound("The containing resource");
}

async function indexGrams(queries: Queries, dialect: Database["dialect"], uid: string, grams: string[]): Promise<void> {
  if (dialect === "postgres")
    await sql`UPDATE resources SET grams = ${grams}::text[] WHERE uid = ${uid}`.execute(queries);
  else
    await sql`INSERT OR REPLACE INTO resource_grams (rowid, grams) VALUES (${rowidOf(uid)}, ${grams.join(" ")})`.execute(
      queries,
    );
}

async function count(queries: Queries, { workspace, kind, parent }: ListScope, by: 1 | -1): Promise<void> {
  await queries
    .insertInto("resource_counts")
    .values({ workspace, kind, parent, n: by })
    .onConflict((conflict) =>
      conflict.columns(["workspace", "kind", "parent"]).doUpdateSet({ n: sql`resource_counts.n + ${by}` }),
    )
    .execute();
}

async function keepRevision(
  queries: Queries,
  row: Pick<ResourceRow, "uid" | "workspace" | "generation" | "spec" | "secrets">,
  actor: string,
  now: number,
): Promise<void> {
  await queries
    .insertInto("revisions")
    .values({
      uid: row.uid,
      revision: String(row.generation),
      workspace: row.workspace,
      created_at: now,
      created_by: actor,
      spec: row.spec,
      secrets: row.secrets,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const kept = queries
    .selectFrom("revisions")
    .select("revision")
    .where("uid", "=", row.uid)
    .orderBy("created_at", "desc")
    .orderBy("revision", "desc")
    .limit(REVISIONS_MAX);
  await queries.deleteFrom("revisions").where("uid", "=", row.uid).where("revision", "not in", kept).execute();
}
