/**
 * The one table of resources: every kind, every workspace. The workspace is the first argument and never optional; a
 * function that crosses workspaces says so in its name.
 */
import { sql } from "kysely";
import type { CursorCodec } from "../../contract/cursor.ts";
import { PlatformError } from "../../contract/errors.ts";
import type { Event } from "../../contract/fields.ts";
import { HOST_LABEL } from "../../contract/held-words.ts";
import type { ListQuery } from "../../contract/list-query.ts";
import { timeOfUid } from "../../lib/ids.ts";
import type { SealedBox } from "../../lib/sealed-box.ts";
import { type Clock, toIso } from "../../lib/time/clock.ts";
import type { Database, Transaction } from "../database/database.ts";
import type { ResourceRow } from "../database/schema.ts";
import { removeCronTriggers } from "../deliveries/cron-triggers.ts";
import { removeWorkloadAccount } from "../people/workload-accounts.ts";
import { removeThreads } from "../threads.ts";
import { changeOf } from "./change-key.ts";
import { createGramFrequencies } from "./gram-frequencies.ts";
import { claimAddresses, keepingLabel } from "./held-words.ts";
import { removeLinks } from "./links.ts";
import { countOf, listResources, type Page } from "./list.ts";
import { requireRoom, takeTurn } from "./quota.ts";
import { createResourceReads } from "./reads.ts";
import { fromRow, type Metadata, type Resource, rowidOf, withTexts } from "./resource.ts";
import { RowCache } from "./row-cache.ts";
import {
  count,
  countNew,
  indexGrams,
  insertRow,
  keepRevision,
  lockRow,
  requireLiveParents,
  requireLiveWorkspace,
  rowBySlot,
  updateRow,
} from "./rows.ts";
import { gramsOf, type ListScope, searchText } from "./search-grams.ts";
import { createStatusCounter } from "./status-counts.ts";

/** Events kept per resource, the newest ones: they tell why a resource is as it is. */
export const EVENTS_MAX = 50;

export interface NewEvent {
  type: string;
  message: string;
  status?: string | undefined;
  revision?: string | undefined;
}

export interface Draft extends ListScope {
  uid: string;
  name: string;
  /** Unique key where names need not be unique (preview tokens). Default: the name. */
  slot?: string | undefined;
  metadata: Metadata;
  spec: Record<string, unknown>;
  secrets: Record<string, string>;
  state: Record<string, unknown>;
  status: string | null;
  events: NewEvent[];
  /** Keeps this spec as a revision. */
  revision: boolean;
  /** Most resources of the kind below one parent. */
  countMax?: number | undefined;
  actor: string;
  /** True when nothing has to be reconciled: the resource is as intended from the start. */
  settled: boolean;
  /** The node that has it; absent for kinds that belong to no machine. */
  node?: string | null | undefined;
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
  /** Frees the name and keeps the record for reading. */
  retire?: true;
  /** The intent changed, so the resource has to be reconciled. */
  intent?: boolean;
  observedGeneration?: number;
  /** Gives the resource to another node. */
  node?: string | null;
}

export type Created = { outcome: "created"; resource: Resource } | { outcome: "exists"; resource: Resource };

export interface ResourcesDeps {
  database: Database;
  clock: Clock;
  box: SealedBox;
  cursors: CursorCodec;
  /** Most resources per workspace, by kind. A kind without an entry has no limit. */
  quotas: Readonly<Record<string, number>>;
}

export type Resources = ReturnType<typeof createResources>;

export function createResources({ database, clock, box, cursors, quotas }: ResourcesDeps) {
  // No cache on PostgreSQL: other servers write, and their notifications arrive too late.
  const cache = database.dialect === "sqlite" ? new RowCache() : null;
  const frequencies = database.dialect === "postgres" ? createGramFrequencies(database, clock) : null;
  const countShared = countNew(database.dialect);
  const statusCounter = createStatusCounter(database.dialect);
  const seal = (uid: string, secrets: Record<string, string>): string | null =>
    Object.keys(secrets).length === 0 ? null : box.seal(JSON.stringify(secrets), uid);

  const secretsOf = (resource: Pick<Resource, "uid" | "sealedSecrets">): Record<string, string> =>
    resource.sealedSecrets === null
      ? {}
      : (JSON.parse(box.open(resource.sealedSecrets, resource.uid)) as Record<string, string>);

  const toEvent = (
    event: NewEvent,
    status: string | null,
    now: number,
    spec: Readonly<Record<string, unknown>>,
  ): Event => {
    const { type, message, revision } = event;
    const { canary } = (spec.revision ?? {}) as { canary?: unknown };
    const told: Event = { type, status: event.status ?? status ?? "", message, time: toIso(now) };
    if (revision) told.revision = revision;
    if (typeof canary === "string" && canary !== "") told.canaryRevision = canary;
    return told;
  };

  async function insert(tx: Transaction, draft: Draft): Promise<Created> {
    const { queries } = tx;
    const { dialect } = database;
    if (dialect === "postgres" || draft.parent !== "") await requireLiveParents(queries, dialect, draft);
    const quota = quotas[draft.kind];
    if (quota !== undefined) await takeTurn(queries, dialect, draft.workspace, draft.kind);
    const now = timeOfUid(draft.uid);
    const { metadata, spec, state } = draft;
    const events = draft.events.map((event) => toEvent(event, draft.status, now, spec));
    const row: ResourceRow = {
      id: dialect === "sqlite" ? rowidOf(draft.uid, now) : null,
      uid: draft.uid,
      workspace: draft.workspace,
      kind: draft.kind,
      parent: draft.parent,
      name: draft.name,
      slot: draft.slot ?? draft.name,
      external_id: metadata.externalId || null,
      status: draft.status,
      generation: 1,
      observed_generation: draft.settled ? 1 : 0,
      version: 1,
      created_at: now,
      updated_at: now,
      deleted_at: null,
      created_by: draft.actor,
      updated_by: draft.actor,
      metadata: JSON.stringify(metadata),
      spec: JSON.stringify(spec),
      secrets: seal(draft.uid, draft.secrets),
      state: JSON.stringify(state),
      events: JSON.stringify(events),
      search: searchText(draft.name, metadata),
      node: draft.node ?? null,
      status_at: now,
    };
    if (!(await insertRow(queries, dialect, row, gramsOf(row.search, draft)))) {
      await requireLiveWorkspace(queries, dialect, draft.workspace);
      const existing = await rowBySlot(queries, dialect, draft, row.slot);
      if (!existing)
        throw new PlatformError("conflict", `${draft.kind} '${draft.name}' is being replaced right now. Try again.`);
      return { outcome: "exists", resource: fromRow(existing) };
    }
    // Without a limit to check, all creates that share the commit are counted together.
    if (quota === undefined && draft.countMax === undefined) tx.share(countShared, draft);
    else await count(queries, dialect, draft, 1);
    statusCounter.record(tx, null, row);
    if (quota !== undefined) await requireRoom(queries, draft.workspace, draft.kind, quota);
    if (draft.countMax !== undefined && (await countOf(queries, draft)) > draft.countMax)
      throw new PlatformError("bad_request", `There cannot be more than ${draft.countMax} of kind ${draft.kind} here.`);
    if (draft.revision) await keepRevision(queries, row, draft.actor, now);
    const label = await claimAddresses(queries, dialect, draft);
    const labelled = label === null ? state : { ...state, [HOST_LABEL]: label };
    if (label !== null) await updateRow(queries, dialect, Object.assign(row, { state: JSON.stringify(labelled) }));
    tx.afterCommit(() => cache?.put(row));
    tx.announce(changeOf(row));
    return { outcome: "created", resource: withTexts(row, { metadata, spec, state: labelled, events }) };
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
      state: change.state ? JSON.stringify(keepingLabel(change.state, current)) : row.state,
      events: change.event
        ? JSON.stringify(
            [...current.events, toEvent(change.event, status, now, change.spec ?? current.spec)].slice(-EVENTS_MAX),
          )
        : row.events,
      generation: row.generation + (change.intent ? 1 : 0),
      observed_generation: change.observedGeneration ?? row.observed_generation,
      version: row.version + 1,
      updated_at: change.actor ? now : row.updated_at,
      updated_by: change.actor ?? row.updated_by,
      deleted_at: change.deleted ? (row.deleted_at ?? now) : row.deleted_at,
      slot: change.retire ? `~${uid}` : row.slot,
      search: searchText(row.name, metadata),
      node: change.node === undefined ? row.node : change.node,
      status_at: status === row.status ? row.status_at : now,
    };
    await updateRow(tx.queries, database.dialect, next);
    statusCounter.record(tx, row, next);
    if (next.search !== row.search) await indexGrams(tx.queries, database.dialect, uid, gramsOf(next.search, current));
    if (change.retire && !current.retired) {
      await count(tx.queries, database.dialect, current, -1);
      await removeLinks(tx.queries, uid);
      await removeWorkloadAccount(tx, uid);
      await removeCronTriggers(tx.queries, uid);
    }
    if (change.revision) await keepRevision(tx.queries, next, change.actor ?? row.updated_by, now);
    tx.afterCommit(() => cache?.put(next));
    tx.announce(changeOf(next));
    return fromRow(next);
  }

  async function remove(tx: Transaction, workspace: string, uid: string): Promise<boolean> {
    const row = await lockRow(tx.queries, database.dialect, workspace, uid);
    if (!row) return false;
    const children = await tx.queries.selectFrom("resources").select("uid").where("parent", "=", uid).execute();
    for (const child of children) await remove(tx, workspace, child.uid);
    await tx.queries.deleteFrom("resources").where("uid", "=", uid).execute();
    await tx.queries.deleteFrom("revisions").where("uid", "=", uid).execute();
    await removeLinks(tx.queries, uid);
    await removeWorkloadAccount(tx, uid);
    await removeCronTriggers(tx.queries, uid);
    await removeThreads(tx.queries, uid);
    if (database.dialect === "sqlite")
      await sql`DELETE FROM resource_grams WHERE rowid = ${rowidOf(uid)}`.execute(tx.queries);
    statusCounter.record(tx, row, null);
    if (!row.slot.startsWith("~")) await count(tx.queries, database.dialect, row, -1);
    tx.afterCommit(() => cache?.forget(uid));
    tx.announce(changeOf(row, true));
    return true;
  }

  return {
    ...createResourceReads(database, cache),
    insert,
    modify,
    remove,
    secretsOf,
    /** Drops a cached row that was changed without the functions of this module. */
    forgetCached: (uid: string): void => cache?.forget(uid),
    create: (draft: Draft) => database.write((tx) => insert(tx, draft)),
    update: (workspace: string, uid: string, decide: (current: Resource) => Modification | null) =>
      database.write((tx) => modify(tx, workspace, uid, decide)),
    delete: (workspace: string, uid: string) => database.write((tx) => remove(tx, workspace, uid)),
    list: (scope: ListScope, query: ListQuery): Promise<Page> =>
      listResources({ database, cursors, frequencies, now: () => clock.now() }, scope, query),
  };
}
