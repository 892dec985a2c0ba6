/** A resource as the core knows it, and its two conversions to and from a row. */
import type { Event } from "../../contract/fields.ts";
import type { Kind, SpecOf, StateOf } from "../../contract/kind.ts";
import { sequenceOfUid, timeOfUid } from "../../lib/ids.ts";
import type { ResourceRow } from "../database/schema.ts";

export interface Metadata {
  displayName?: string | undefined;
  labels?: Record<string, string> | undefined;
  externalId?: string | undefined;
  [extra: string]: unknown;
}

export type Json = Record<string, unknown>;

/** `Spec` and `State` are known where the kind is: see `ResourceOf`. */
export interface Resource<Spec extends Json = Json, State extends Json = Json> {
  uid: string;
  workspace: string;
  kind: string;
  /** uid of the containing resource, or "". */
  parent: string;
  name: string;
  metadata: Metadata;
  /** Secrets are masked here; see Resources.secretsOf. */
  spec: Spec;
  sealedSecrets: string | null;
  /** Facts that the platform observed or decided. */
  state: State;
  status: string | null;
  events: Event[];
  /** Counts changes of the spec; `observedGeneration` is the last one that was acted on. */
  generation: number;
  observedGeneration: number;
  /** Counts every change; the ETag. */
  version: number;
  createdAt: number;
  updatedAt: number;
  deletedAt: number | null;
  createdBy: string;
  updatedBy: string;
  /** A retired record has freed its name and is kept only for reading. */
  retired: boolean;
  /** The node that has it; null for kinds that belong to no machine. */
  node: string | null;
  /** When the resource got its status. */
  statusAt: number;
}

/** A resource of the kind. */
export type ResourceOf<K extends Kind> = Resource<SpecOf<K>, StateOf<K>>;

/** The resource with the types of its kind. */
export function ofKind<K extends Kind>(kind: K, resource: Resource): ResourceOf<K> {
  if (resource.kind !== kind.name) throw new Error(`a ${resource.kind} is no ${kind.name}`);
  return resource as ResourceOf<K>;
}

type Row = Omit<ResourceRow, "id" | "search">;

export const fromRow = (row: Row): Resource =>
  withTexts(row, {
    metadata: JSON.parse(row.metadata) as Metadata,
    spec: JSON.parse(row.spec) as Json,
    state: JSON.parse(row.state) as Json,
    events: JSON.parse(row.events) as Event[],
  });

/** Builds the resource from a row whose JSON texts the caller has already parsed. */
export function withTexts(row: Row, texts: Pick<Resource, "metadata" | "spec" | "state" | "events">): Resource {
  return {
    uid: row.uid,
    workspace: row.workspace,
    kind: row.kind,
    parent: row.parent,
    name: row.name,
    metadata: texts.metadata,
    spec: texts.spec,
    sealedSecrets: row.secrets,
    state: texts.state,
    status: row.status,
    events: texts.events,
    generation: row.generation,
    observedGeneration: row.observed_generation,
    version: row.version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    deletedAt: row.deleted_at,
    createdBy: row.created_by,
    updatedBy: row.updated_by,
    retired: row.slot.startsWith("~"),
    node: row.node,
    statusAt: row.status_at,
  };
}

/** SQLite's rowid of a uid: its time and counter, so that rows and their search index are in order of creation. */
export const rowidOf = (uid: string, time = timeOfUid(uid)): number =>
  (time - ROWID_EPOCH_MS) * 4096 + sequenceOfUid(uid);

/** 41 bits of milliseconds and 12 of counter fit the 53 bits of a number until 2094. */
const ROWID_EPOCH_MS = Date.UTC(2025, 0, 1);
