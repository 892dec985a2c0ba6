/**
 * The interfaces between the server and the behaviour of a kind. Nothing here is specific to one kind: a kind builds
 * what only it needs from these parts.
 */

import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import type { z } from "zod";
import type { AcmeSettings } from "../acme/acme-client.ts";
import type { Caller } from "../contract/caller.ts";
import type { PlatformError } from "../contract/errors.ts";
import type { EventStream } from "../contract/event-stream.ts";
import type { Kind } from "../contract/kind.ts";
import type { Operation, Role } from "../contract/operation.ts";
import type { Link } from "../contract/references.ts";
import type { Version } from "../contract/versions/version.ts";
import type { Activity } from "../lib/activity.ts";
import type { DiskWatch } from "../lib/disk/disk-watch.ts";
import type { OperatorNetwork } from "../lib/network/egress/operator-networks.ts";
import type { Outbound } from "../lib/network/outbound-http.ts";
import type { DriveQuota } from "../lib/schemas/drive-quota.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { EgressMeter } from "../metering/egress-meter.ts";
import type { Meter } from "../metering/meter.ts";
import type { PriceBook } from "../metering/price-book.ts";
import type { Blob, BlobStore, SharedBlobs } from "../node/blobs/blob-store.ts";
import type { Builder } from "../node/builds/builder.ts";
import type { Driver } from "../node/driver.ts";
import type { BlobUploads } from "../node/images/blob-uploads.ts";
import type { Puller } from "../node/images/puller.ts";
import type { AllLogs } from "../node/logs/all-logs.ts";
import type { Logs } from "../node/logs/log-room.ts";
import type { Nodes } from "../node/nodes.ts";
import type { Transaction } from "../store/database/database.ts";
import type { Workspace } from "../store/people/workspaces.ts";
import type { Json, Metadata, Resource } from "../store/resources/resource.ts";
import type { Modification, NewEvent } from "../store/resources/resources.ts";
import type { Revision } from "../store/resources/revision.ts";
import type { ListScope } from "../store/resources/search-grams.ts";
import type { Store } from "../store/store.ts";
import type { Feed } from "./watch/feed.ts";
import type { WorkspaceAuthorities } from "./workload/workspace-authority.ts";

/** Operator settings that the API depends on. */
export interface Settings {
  brand: string;
  region: string;
  /** Aliases of the region, for clients that use another provider's region names. */
  regionAliases: readonly string[];
  /** Codes of the server's location; empty when the operator has not configured them. */
  continent: string;
  country: string;
  /** Processors of the machine, under the names that policies use. */
  flavors: readonly { type: "cpu" | "gpu"; name: string }[];
  plan: string;
  nodeId: string;
  /** Address of the management API without the `/v0` prefix, no trailing slash. */
  publicUrl: string;
  /** Address of the S3 door without a trailing slash; null = this server has none. */
  s3Url: string | null;
  /** Whether the S3 door answers for drives of other nodes too. */
  s3ReachesAll: boolean;
  /** URL of the web console, when the operator configured one; see `consoleUrl`. */
  consoleUrl: string | null;
  /** Domain below which workloads get host names; null = workloads have path addresses only. */
  domain: string | null;
  version: string;
  standbyAfterMs: number;
  /** Bytes of the machine's memory to keep available by putting sandboxes to sleep; 0 = nothing is done for it. */
  memoryFreeMinBytes: number;
  /** Idle timeout: a copy of an agent, function or application is stopped after this long without a request. */
  idleAfterMs: number;
  egressPool: readonly string[];
  /** Networks that VPCs may have routes to; empty = no VPC has a route. */
  vpcNetworks: readonly OperatorNetwork[];
  /** The certificate authority to ask; null = none. */
  acme: AcmeSettings | null;
  /** Whether the operator has a certificate for the platform's own names. */
  ownCertificate: boolean;
  /** DNS servers to ask, as address or address:port; empty = the machine's own resolvers. */
  dnsServers: readonly string[];
  publicIps: readonly string[];
  /** Resources per workspace, by kind. A kind that is not listed has no limit. */
  quotas: Readonly<Record<string, number>>;
  /** What all drives of a workspace may hold together. */
  driveQuota: DriveQuota;
  /** Whether callback URLs may have private addresses. */
  privateCallbacks: boolean;
  /** Feature flags that the operator switched on. */
  features: readonly string[];
  /** Days that the single usage events behind a bill are kept. */
  usageEventsDays: number;
  /** Job tasks that this server runs at a time, and their total memory. */
  jobSlots: number;
  jobMemoryMb: number;
  /** Share of a node's memory in use from which new workloads go to another node. */
  nodeFullShare: number;
  /** Memory that one workload may have on this machine. */
  memoryMaxMb: number;
  /** Lease of a task: without a heartbeat for this long, the task is given to another server. */
  jobLeaseMs: number;
  /** Time between SIGTERM and SIGKILL when a task exceeds its timeout. */
  jobGraceMs: number;
  /** Size of the largest image archive that can be uploaded. */
  imageBytesMax: number;
  /** Bytes of the images that one workspace may have pushed. */
  registryBytesMax: number;
  /** Environment variables of every build, such as registries and certificates. */
  buildEnv: Readonly<Record<string, string>>;
  /** OTLP/HTTP collector that workloads send traces and metrics to; null = none. */
  otlpUrl: string | null;
  /** How long a thread is kept after its last message. */
  threadsKeptMs: number;
  /** How long an execution of a job is kept after its end. */
  executionsKeptMs: number;
}

export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The model providers, for the operations that describe them. */
export interface ModelProviders {
  /** Returns null when no provider has this name. */
  describe(integration: string): ProviderDescription | null;
  /** Why a model cannot be called with this connection (null: with none); null when it can. */
  problemOf(model: Pick<Resource, "name" | "spec">, connection: Resource | null): string | null;
  /** The models that a connection's key may use, as listed by the provider. */
  listModels(connection: Resource): Promise<ProviderModel[]>;
  /** What the token caps of these policies leave to a caller now. */
  budgetsLeft(
    workspace: string,
    policies: readonly Resource[],
    subject: { type: string; id: string },
  ): Promise<ModelBudget[]>;
}

export interface ModelBudget {
  policy: string;
  per: "policy" | "key" | "session";
  startTime: string;
  endTime: string;
  limits: { name: "input" | "output" | "total" | "requests"; limit: number; used: number; left: number }[];
}

export interface ProviderDescription {
  name: string;
  additionalInfos: Record<string, string>;
  endpoints: Record<string, { method: string; token?: { sent?: string; received?: string; total?: string } }>;
  headers: Record<string, string>;
  params: Record<string, string>;
  secrets: string[];
  /** The provider cannot be called without one of the secrets. */
  needsSecret: boolean;
  config: string[];
}

export interface ProviderModel {
  id: string;
  displayName?: string;
  ownedBy?: string;
}

/** One result of `berth doctor`. */
export interface MachineFinding {
  check: string;
  state: "ok" | "warning" | "problem";
  says: string;
  next?: string;
  command?: string;
}

/** What the operations of the API use. No part of it belongs to one machine, except `here`. */
export interface Platform {
  providers: ModelProviders;
  store: Store;
  /** HTTP client for URLs that tenants choose. */
  outbound: Outbound;
  clock: Clock;
  settings: Settings;
  log: Log;
  /** The servers on this database. */
  nodes: Nodes;
  /** Prices of usage. */
  prices: PriceBook;
  /** Kinds that a reconciler handles; see Behaviour.reconciled. */
  reconciledKinds: readonly string[];
  /** Derives a key for one purpose from the derivation root; the key survives a change of the secret key. */
  keyFor(purpose: string): Buffer;
  /** The latest changes of all resources. */
  feed: Feed;
  /** The log lines of all nodes. */
  allLogs: AllLogs;
  /** What a live node finds when it checks its machine and its settings. */
  findingsOf(node: string): Promise<MachineFinding[]>;
  /** A manifest, configuration or layer of an image that another node has under the driver's name; null when none has. */
  partOfPeer(image: string, digest: string): Promise<Readable | null>;
  /**
   * The machine of the server that received the request. An operation that uses it works only for workloads and files
   * on that machine.
   */
  readonly here: Deps;
}

/** One machine that runs workloads, as seen by the server on it. */
export interface Node {
  driver: Driver;
  /** Whether the data folder has space for new work. */
  disk: DiskWatch;
  /** Archives that clients uploaded. */
  blobs: BlobStore;
  /** Where servers share these files; undefined where no other server needs them. */
  sharedBlobs: SharedBlobs | undefined;
  /** Pulls images of registries. */
  puller: Puller;
  /** Blobs that clients push. */
  blobUploads: BlobUploads;
  /** Builds images. */
  builder: Builder;
  /** Log lines of workloads. The driver stores the output of every workload that has a log tag. */
  logs: Logs;
  /** Open requests and last use of workloads, in this process. */
  activity: Activity;
  /** Meters usage on this node for billing. */
  meter: Meter;
  /** Records which workload owns an outgoing connection of this node. */
  egress: Pick<EgressMeter, "watch">;
  /** Certificate authorities of workspaces, for workloads with routes. */
  authorities: WorkspaceAuthorities;
}

/** What reconcilers and periodic tasks use: the platform and the machine they act on. */
export type Deps = Platform & Node;

export interface Call<Query = Record<string, unknown>, Body = unknown> {
  operation: Operation;
  params: Record<string, string>;
  query: Query;
  body: Body;
  /** The unread body of an operation that is declared to take a stream; null for all others. */
  stream: Readable | null;
  caller: Caller;
  /** The workspace of the call and the caller's role in it; null for operations outside a workspace. */
  workspace: Workspace | null;
  role: Role | null;
  version: Version;
  headers: IncomingHttpHeaders;
  requestId: string;
  /** The uid of the resource that this call creates; stays the same when an idempotent request is retried. */
  uid(): string;
  setHeader(name: string, value: string): void;
  /** The JSON of the answer, set by a handler that needed it, so that the answer is not serialised twice. */
  text: string | null;
  /** Adds a warning to the answer: something the caller asked for has no effect. Takes a whole sentence. */
  warn(text: string): void;
  /** Answers with another success status than the declared one. */
  setStatus(status: 200 | 202 | 304): void;
  /**
   * Writes the audit entry of this call in the given transaction, so that the change and its entry commit together.
   * Call it in the last transaction, at its end. A call without a transaction is audited after its handler returns.
   */
  audit(tx: Transaction): void;
}

export interface Implementation {
  operation: Operation;
  handle(call: Call, deps: Platform): Promise<unknown>;
  /** Throws when the subject of the request does not exist; called before the body is read. */
  subject?: ((call: Call, deps: Platform) => Promise<void>) | undefined;
  /** The node whose machine the operation uses; absent = any. The request is handed to that node before its body is read. */
  node?(asked: { workspace: string; params: Record<string, string> }, deps: Platform): Promise<string | null>;
  /** Adds members to the body of an error that clients of this operation expect; called once the caller is known. */
  explain?(error: PlatformError, failed: FailedCall): Record<string, unknown>;
}

export interface FailedCall {
  operation: Operation;
  params: Record<string, string>;
  /** The body as received, not validated. */
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

/** Like `implement`, for an operation that answers with events. */
export function implementEvents<Query extends z.ZodObject, Body extends z.ZodType>(
  operation: Operation<Query, Body>,
  handle: (call: Call<z.output<Query>, z.output<Body>>, deps: Platform) => Promise<EventStream>,
): Implementation {
  return { operation: operation as unknown as Operation, handle: handle as Implementation["handle"] };
}

/** Like `implement`, for an operation that answers with bytes. An error of the stream cuts the answer off. */
export function implementBytes<Query extends z.ZodObject, Body extends z.ZodType>(
  operation: Operation<Query, Body>,
  handle: (call: Call<z.output<Query>, z.output<Body>>, deps: Platform) => Promise<Readable>,
): Implementation {
  return { operation: operation as unknown as Operation, handle: handle as Implementation["handle"] };
}

/** The workspace of a call whose operation is about one. */
export function workspaceOf({ workspace, operation }: Pick<Call, "workspace" | "operation">): Workspace {
  if (!workspace) throw new Error(`${operation.id} was called without a workspace`);
  return workspace;
}

/** The workspace that a request names in a header or in its query; null when the request names none. */
export function namedWorkspace(
  { headers, query }: { headers: IncomingHttpHeaders; query: { workspace?: unknown } },
  { settings }: { settings: Pick<Settings, "brand"> },
): string | null {
  const given = [headers[`x-${settings.brand}-workspace`], headers["x-service-workspace"], query.workspace];
  return given.find((value): value is string => typeof value === "string" && value !== "") ?? null;
}

/** A client's request after validation by the kind's schema. */
export interface Input<Of extends Resource = Resource> {
  metadata: Metadata & { name?: string };
  spec: Of["spec"];
}

export interface PrepareContext<Of extends Resource = Resource> {
  call: Call;
  deps: Platform;
  /** The resource being replaced; null on create. */
  current: Of | null;
  /** Outermost container first. */
  parents: readonly Resource[];
  /** Keys of secrets that only this answer shows in clear text, because they were just made. */
  reveal: Set<string>;
  /** Initial observed state of a new resource. */
  state: Partial<Of["state"]>;
  /** Set by `prepare` when it already knows the resulting status; overrides the kind's own `outlook`. */
  outlook?: Outlook;
}

export interface PresentContext<Gathered = unknown> {
  deps: Platform;
  parents: readonly Resource[];
  /** The result of `gather`. */
  gathered: Gathered;
  /** Whether the answer is part of a list, which may show less than a single read. */
  inList: boolean;
}

export type Wire<Of extends Resource = Resource> = { metadata: Json; spec: Of["spec"] } & Json;

/** Status of a resource right after its spec was written, before a reconciler has acted. */
export interface Outlook {
  status: string;
  event?: NewEvent;
}

/** How a kind handles uploaded archives; uploads.ts receives them. */
export interface Uploads {
  /** Status of a record that waits for its archive, where the kind has a status. */
  awaiting?: Outlook;
  /** Name of the revision or version that the archive becomes. */
  nameOf(call: Call, current: Resource | null): string;
  /** Checks an uploaded archive. The change is written first; then a refusal is sent to the client. */
  take(
    archive: Blob,
    name: string,
    deps: Platform,
  ): Promise<{
    change(current: Resource): Modification;
    refusal?: PlatformError;
    /** Called once the change is written. */
    begin?(changed: Resource, deps: Platform): void;
  }>;
}

/** `Of` is a resource of the kind; methods get what the kind's schemas say. */
export interface Behaviour<Of extends Resource = Resource, Gathered = unknown> {
  kind: Kind<Of["spec"], Of["state"]>;
  /** Fills defaults and checks what the schema cannot; changes `input` in place. */
  prepare?(input: Input<Of>, context: PrepareContext<Of>): Promise<void> | void;
  /** Makes a name for a resource sent without one; called again when the name is already taken. */
  generateName?(tx: Transaction, scope: ListScope, deps: Platform): Promise<string>;
  /** The key that must be unique in the collection, where that is not the name. */
  slot?(input: Input<Of>): string;
  /** Status after a write, where it depends on the spec; absent = the kind's initial status. */
  outlook?(spec: Of["spec"], current: Of | null): Outlook;
  /** Names that are unique on the whole platform, beside the kind's references. */
  claims?(input: Input<Of>, call: Call): Link[];
  /** Called in the transaction that writes the resource, before its links are stored. */
  beforeLinks?(tx: Transaction, links: readonly Link[], call: Call, deps: Platform): Promise<void>;
  /** Reads what `present` needs beside the resources, once per answer. */
  gather?(resources: readonly Of[], context: { deps: Platform; inList: boolean }): Promise<Gathered>;
  /** Adds computed members to the answer. */
  present?(wire: Wire<Of>, resource: Of, context: PresentContext<Gathered>): void;
  /** Last step of a create, in its transaction: claims what only one resource can have. */
  onCreate?(tx: Transaction, resource: Of, deps: Platform): Promise<Modification | null>;
  /** Called in the transaction of every create and update, after the write; returns the resource as it is then. */
  onWrite?(tx: Transaction, resource: Of, deps: Platform): Promise<Resource>;
  /** Resources of other workspaces that this workspace may read but not change: all, or those named `name`. */
  borrowed?(workspace: Workspace, name: string | null, deps: Platform): Promise<Resource[]>;
  /** Refuses to delete a resource that contains others. */
  childrenFirst?: boolean;
  /** Members of a revision in the list of revisions, where the kind has its own shape. */
  presentRevision?(revision: Revision): Record<string, unknown>;
  /** Filters a list by the kind's own query parameters. */
  narrow?(resource: Of, query: Record<string, unknown>): boolean;
  /** Throws when the resource may not be deleted now. */
  guardDelete?(resource: Of, deps: Platform): Promise<void>;
  /** Only the creator of the resource or an admin of the workspace may delete it. */
  deletedByCreator?: true;
  /** The answer to a delete, when it is not the resource. */
  deleted?(resource: Of): unknown;
  /**
   * Whether a reconciler handles this kind. If so, a delete only marks the record until the reconciler has cleaned up,
   * and each change is handed to the reconciler. "on-delete" = only deletes are reconciled.
   */
  reconciled?: boolean | "on-delete";
  /** Its reconciler also has work at times that the spec names, so that "on-delete" holds for deletes alone. */
  timed?: true;
  /** Set for kinds whose content can be uploaded as an archive. */
  uploads?: Uploads;
  /** Answers a delete only once the clean-up has ended and the name is free. */
  awaitDelete?: boolean;
  /** Answers a create once `until` holds, or after `waitMs` with the current state. */
  ready?: {
    until(resource: Of): boolean;
    waitMs: number;
    /** Work that takes long by its nature, such as a pull: while it goes on, the wait goes on, too. */
    longer?: { while(resource: Of): boolean; waitMs: number };
    /** The error that the caller gets when the resource ended in a failure. */
    failed?(resource: Of): PlatformError | null;
  };
  /** What a create does when the name exists; absent = refuse. */
  onExists?(existing: Of, call: Call, nowMs: number): "refuse" | "replace" | "reuse";
  explain?: Implementation["explain"];
  handlers?: readonly Implementation[];
  reconciler?: Reconciler<unknown, unknown, Of>;
}

export interface ReconcileContext<Of extends Resource = Resource> {
  deps: Deps;
  signal: AbortSignal;
  /** Writes observed state or a decision to this resource; does nothing when it is retired or removed. */
  record(change: (current: Of) => Modification | null): Promise<Of | null>;
}

/**
 * Makes the world match a record: observe, plan, act. All decisions are in `plan`, which is pure; `act` performs them.
 * Only the reconcile loop retries: `act` throws and the loop backs off. A PlatformError with a status below 500 is
 * final until the spec changes, and is recorded as the reason of a FAILED status.
 */
export interface Reconciler<Observed = unknown, Step = unknown, Of extends Resource = Resource> {
  observe(resource: Of, context: ReconcileContext<Of>): Promise<Observed>;
  plan(resource: Of, observed: Observed, nowMs: number): Plan<Step>;
  act(step: Step, resource: Of, context: ReconcileContext<Of>): Promise<void>;
}

export interface Plan<Step> {
  steps: Step[];
  /** Observe again after this long even if nothing changes. */
  againMs?: number;
  /** The steps reach the intended state, so their own writes cause no new run before `againMs`. */
  settles?: true;
}
