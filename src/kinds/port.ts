/**
 * What the server half of a kind gets and gives. The context never learns a kind: what one kind alone needs, it makes
 * itself from these.
 */

import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import type { z } from "zod";
import type { Caller } from "../contract/caller.ts";
import type { PlatformError } from "../contract/errors.ts";
import type { Kind } from "../contract/kind.ts";
import type { Operation, Role } from "../contract/operation.ts";
import type { Link } from "../contract/references.ts";
import type { Version } from "../contract/versions/version.ts";
import type { Activity } from "../lib/activity.ts";
import type { DiskWatch } from "../lib/disk/disk-watch.ts";
import type { Outbound } from "../lib/network/outbound-http.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { EgressMeter } from "../metering/egress-meter.ts";
import type { Meter } from "../metering/meter.ts";
import type { PriceBook } from "../metering/price-book.ts";
import type { Blob, BlobStore } from "../node/blobs/blob-store.ts";
import type { Driver } from "../node/driver.ts";
import type { Logs } from "../node/logs/log-room.ts";
import type { Transaction } from "../store/database/database.ts";
import type { Workspace } from "../store/people/workspaces.ts";
import type { Metadata, Resource } from "../store/resources/resource.ts";
import type { Modification, NewEvent } from "../store/resources/resources.ts";
import type { Revision } from "../store/resources/revision.ts";
import type { ListScope } from "../store/resources/search-grams.ts";
import type { Store } from "../store/store.ts";

/** The operator's choices that shape what the API says. */
export interface Settings {
  brand: string;
  region: string;
  /** Other names for the region, for clients that are used to them. */
  regionAliases: readonly string[];
  /** Codes of where the server stands; empty when the operator has not told. */
  continent: string;
  country: string;
  /** Processors of the machine, in the words of policies. */
  flavors: readonly { type: "cpu" | "gpu"; name: string }[];
  plan: string;
  nodeId: string;
  /** Address of the management API without the `/v0` prefix, no trailing slash. */
  publicUrl: string;
  /** Address of the pages for people, when the operator gave one; see `consoleUrl`. */
  consoleUrl: string | null;
  /** Domain below which workloads have host names of their own; null = addresses have the path form only. */
  domain: string | null;
  version: string;
  standbyAfterMs: number;
  /** How long without a request until a copy of an agent, function or application is let go. */
  idleAfterMs: number;
  egressPool: readonly string[];
  /** DNS servers to ask, as address or address:port; empty = the machine's own. */
  dnsServers: readonly string[];
  publicIps: readonly string[];
  /** How many of a kind a workspace may have, by kind; one that is not named has no limit. */
  quotas: Readonly<Record<string, number>>;
  /** Callback addresses may be private ones. */
  privateCallbacks: boolean;
  /** The operator's own flags that are on. */
  features: readonly string[];
  /** How long the single events behind a bill are kept. */
  usageEventsDays: number;
  /** Tasks of jobs that this server runs at a time, and the memory they may take together. */
  jobSlots: number;
  jobMemoryMb: number;
  /** The most that one workload can have on this machine. */
  memoryMaxMb: number;
  /** How long a task is held without being heard of. */
  jobLeaseMs: number;
  /** That a task has to end once its time is over. */
  jobGraceMs: number;
  /** The largest archive that an image may arrive in. */
  imageBytesMax: number;
  /** Variables of every build: registries, certificates. */
  buildEnv: Readonly<Record<string, string>>;
  /** Collector that code sends its traces and metrics to (OTLP over HTTP). */
  otlpUrl: string | null;
  /** How long an agent remembers a thread after its last message. */
  threadsKeptMs: number;
  /** How long an execution of a job can be read after its end. */
  executionsKeptMs: number;
}

export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** What the gateway knows of model providers, for the operations that tell about them. */
export interface ModelProviders {
  /** Null when no provider has this name. */
  describe(integration: string): ProviderDescription | null;
  /** Why a model cannot be called with this connection, or with none; null when it can. */
  problemOf(model: Pick<Resource, "name" | "spec">, connection: Resource | null): string | null;
  /** The models that a connection's key may use, asked of the provider itself. */
  listModels(connection: Resource): Promise<ProviderModel[]>;
}

export interface ProviderDescription {
  name: string;
  additionalInfos: Record<string, string>;
  endpoints: Record<string, { method: string; token?: { sent?: string; received?: string; total?: string } }>;
  headers: Record<string, string>;
  params: Record<string, string>;
  secrets: string[];
  /** It can be called with one of the secrets only. */
  needsSecret: boolean;
  config: string[];
}

export interface ProviderModel {
  id: string;
  displayName?: string;
  ownedBy?: string;
}

/** What the operations of the API work with: nothing here belongs to one machine. */
export interface Platform {
  providers: ModelProviders;
  store: Store;
  /** HTTP to addresses that tenants name. */
  outbound: Outbound;
  clock: Clock;
  settings: Settings;
  log: Log;
  /** What usage costs. */
  prices: PriceBook;
  /** Kinds that something acts on; see Behaviour.reconciled. */
  reconciledKinds: readonly string[];
  /** A key for one purpose, made from the derivation root: it stays when the secret key is replaced. */
  keyFor(purpose: string): Buffer;
  /**
   * The machine of the server that took the request. An operation that uses it works only where the workload or the
   * file is on that machine.
   */
  readonly here: Deps;
}

/** One machine that workloads run on, as the server on that machine sees it. */
export interface Node {
  driver: Driver;
  /** Whether the data folder has room for new work. */
  disk: DiskWatch;
  /** Archives that clients sent. */
  blobs: BlobStore;
  /** Lines that workloads write; the driver takes in the output of every workload that has a tag. */
  logs: Logs;
  /** Which workloads are busy, in this process. */
  activity: Activity;
  /** Tells the bill what runs and what happened on this node. */
  meter: Meter;
  /** Records which workload owns an outgoing connection of this node. */
  egress: Pick<EgressMeter, "watch">;
}

/** What reconcilers and periodic tasks work with: the platform, and the machine that they act on. */
export type Deps = Platform & Node;

export interface Call<Query = Record<string, unknown>, Body = unknown> {
  operation: Operation;
  params: Record<string, string>;
  query: Query;
  body: Body;
  /** The body's bytes, unread, of an operation that is declared to take a stream; null for all others. */
  stream: Readable | null;
  caller: Caller;
  /** The workspace the call is about and the caller's role there; absent for operations that are not about one. */
  workspace: Workspace | null;
  role: Role | null;
  version: Version;
  headers: IncomingHttpHeaders;
  requestId: string;
  /** The uid for what this call creates; the same again when an idempotent request is retried. */
  uid(): string;
  setHeader(name: string, value: string): void;
  /** Tells the caller of something that was asked for and will not happen; a whole sentence. */
  warn(text: string): void;
  /** Answers with another success status than the declared one. */
  setStatus(status: 200 | 202 | 304): void;
  /**
   * Puts the audit line of this call into the transaction that does what it tells of, so that neither is there without
   * the other. For the last transaction of a call, at its end; a call that has none is told of afterwards.
   */
  audit(tx: Transaction): void;
}

export interface Implementation {
  operation: Operation;
  handle(call: Call, deps: Platform): Promise<unknown>;
  /** Throws when what the request is about is not there; asked before its body is read. */
  subject?: ((call: Call, deps: Platform) => Promise<void>) | undefined;
  /** Members that clients of this operation expect in the body of a failure, once the caller is known. */
  explain?(error: PlatformError, failed: FailedCall): Record<string, unknown>;
}

export interface FailedCall {
  operation: Operation;
  params: Record<string, string>;
  /** As it was sent; it may be anything. */
  body: unknown;
  workspace: string | null;
  nowMs: number;
}

/** Ties a handler to its declaration, so that the types of query, body and response come from the schema. */
export function implement<Query extends z.ZodObject, Body extends z.ZodType, Response extends z.ZodType>(
  operation: Operation<Query, Body, Response>,
  handle: (call: Call<z.output<Query>, z.output<Body>>, deps: Platform) => Promise<z.input<Response>>,
): Implementation {
  return { operation: operation as unknown as Operation, handle: handle as Implementation["handle"] };
}

/** The workspace of a call whose operation is about one. */
export function workspaceOf({ workspace, operation }: Pick<Call, "workspace" | "operation">): Workspace {
  if (!workspace) throw new Error(`${operation.id} was called without a workspace`);
  return workspace;
}

/** What a client asked for, after the kind's schema. */
export interface Input {
  metadata: Metadata & { name?: string };
  spec: Record<string, unknown>;
}

export interface PrepareContext {
  call: Call;
  deps: Platform;
  /** The resource being replaced; null on create. */
  current: Resource | null;
  /** From the outermost container to the innermost. */
  parents: readonly Resource[];
  /** Secrets, by their keys, that this one answer shows in clear because they have just been made. */
  reveal: Set<string>;
  /** What the platform keeps about a new resource from the start. */
  state: Record<string, unknown>;
  /** Set by `prepare` where it has found out how the resource will stand; before the kind's own `outlook`. */
  outlook?: Outlook;
}

export interface PresentContext {
  deps: Platform;
  parents: readonly Resource[];
  /** What `gather` found. */
  gathered: unknown;
  /** Lists may be lighter than a single read. */
  inList: boolean;
}

export type Wire = { metadata: Record<string, unknown>; spec: Record<string, unknown> } & Record<string, unknown>;

/** How a resource stands right after its intent was written, before anybody has acted on it. */
export interface Outlook {
  status: string;
  event?: NewEvent;
}

/** How a kind takes archives; see uploads.ts for how they come. */
export interface Uploads {
  /** How a record stands while its archive is awaited, where the kind has a status. */
  awaiting?: Outlook;
  /** What the archive will be: the name of a revision or a version. */
  nameOf(call: Call, current: Resource | null): string;
  /** Looks at what has arrived. A refusal is told to the sender after the change is written. */
  take(
    archive: Blob,
    name: string,
    deps: Platform,
  ): Promise<{ change(current: Resource): Modification; refusal?: PlatformError }>;
}

export interface Behaviour {
  kind: Kind;
  /** Fills defaults and checks what the schema cannot; changes `input` in place. */
  prepare?(input: Input, context: PrepareContext): Promise<void> | void;
  /** A name for what was sent without one; called again when another took it meanwhile. */
  generateName?(tx: Transaction, scope: ListScope, deps: Platform): Promise<string>;
  /** What the unique place of the resource is, where that is not its name. */
  slot?(input: Input): string;
  /** Where the status depends on the spec; absent = the kind's initial status. */
  outlook?(spec: Record<string, unknown>, current: Resource | null): Outlook;
  /** Words of the whole platform that only one resource may have, beside the kind's references. */
  claims?(input: Input, call: Call): Link[];
  /** In the transaction that writes the resource, before its links are made. */
  beforeLinks?(tx: Transaction, links: readonly Link[], call: Call, deps: Platform): Promise<void>;
  /** Reads what `present` needs beside the resources themselves, once for all that are answered. */
  gather?(resources: readonly Resource[], context: { deps: Platform; inList: boolean }): Promise<unknown>;
  /** Adds computed members to the answer. */
  present?(wire: Wire, resource: Resource, context: PresentContext): void;
  /** The last part of a create, in its transaction: takes what only one resource can have. */
  onCreate?(tx: Transaction, resource: Resource, deps: Platform): Promise<Modification | null>;
  /** In the transaction of every create and update, after the resource is written; returns it as it is then. */
  onWrite?(tx: Transaction, resource: Resource, deps: Platform): Promise<Resource>;
  /** Resources of other workspaces that this one may read but not change: all, or those of one name. */
  borrowed?(workspace: Workspace, name: string | null, deps: Platform): Promise<Resource[]>;
  /** A resource that contains others is not deleted. */
  childrenFirst?: boolean;
  /** Members of one revision in a list of them, where the kind has a shape of its own. */
  presentRevision?(revision: Revision): Record<string, unknown>;
  /** Which resources a list with the kind's own parameters shows. */
  narrow?(resource: Resource, query: Record<string, unknown>): boolean;
  /** Throws when the resource may not be deleted now. */
  guardDelete?(resource: Resource, deps: Platform): Promise<void>;
  /** Only who made the resource, or an admin of the workspace, may delete it. */
  deletedByCreator?: true;
  /** What delete answers, when it is not the resource. */
  deleted?(resource: Resource): unknown;
  /**
   * Something acts on this kind: a delete is a mark until it has acted, and so is every change; "on-delete" for kinds
   * that need nobody before they go.
   */
  reconciled?: boolean | "on-delete";
  /** Its content can be sent as an archive. */
  uploads?: Uploads;
  /** A delete is answered once the resource has let go of its name and of all it held. */
  awaitDelete?: boolean;
  /** A create is answered once this holds, or after `waitMs` with what is there. */
  ready?: {
    until(resource: Resource): boolean;
    waitMs: number;
    /** What the caller is told when it came to a bad end. */
    failed?(resource: Resource): PlatformError | null;
  };
  /** What a create does that meets a record of the same name; absent = refuse. */
  onExists?(existing: Resource, call: Call, nowMs: number): "refuse" | "replace" | "reuse";
  explain?: Implementation["explain"];
  handlers?: readonly Implementation[];
  reconciler?: Reconciler;
}

export interface ReconcileContext {
  deps: Deps;
  signal: AbortSignal;
  /** Writes what was observed or decided about this resource; a retired or removed one is left alone. */
  record(change: (current: Resource) => Modification | null): Promise<Resource | null>;
}

/**
 * How the world is made to match a record: look, decide, do. All decisions are in `plan`, which is pure; `act` obeys.
 * The loop is the only retrier: `act` throws, the loop backs off. A PlatformError below 500 is final until the intent
 * changes, and is recorded as the reason of a FAILED status.
 */
export interface Reconciler<Observed = unknown, Step = unknown> {
  observe(resource: Resource, context: ReconcileContext): Promise<Observed>;
  plan(resource: Resource, observed: Observed, nowMs: number): Plan<Step>;
  act(step: Step, resource: Resource, context: ReconcileContext): Promise<void>;
}

export interface Plan<Step> {
  steps: Step[];
  /** Look again after this long even if nothing changes. */
  againMs?: number;
  /** Once the steps are done the world is as intended: what they record is no reason to look before `againMs`. */
  settles?: true;
}

/** Keeps the types of one kind's steps between plan and act. */
export const defineReconciler = <Observed, Step>(reconciler: Reconciler<Observed, Step>): Reconciler =>
  reconciler as Reconciler;
