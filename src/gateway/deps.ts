/** Everything the gateway needs from outside, as plain functions and data. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Registry } from "prom-client";
import type { WorkloadKind } from "../contract/addresses.ts";
import type { GatewayErrorCode, GatewayErrorOptions } from "../contract/gateway-errors.ts";
import type { Kept } from "../contract/kept-access.ts";
import type { Downstream } from "../http/downstream.ts";
import type { FixedHeaders } from "../http/header-rules.ts";
import type { PathPages } from "../http/page-rules.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { GatewayLimits } from "./limits.ts";
import type { RevisionPlan } from "./pick-revision.ts";

export type Maybe<T> = T | Promise<T>;

export interface GatewayDeps {
  settings: GatewaySettings;
  clock: Clock;
  log: GatewayLog;
  registry: Registry;
  /** In [0, 1): which requests a canary takes. */
  random(): number;

  /** True when a verified custom domain claims this host. Asked for every request, so it must not wait. */
  isCustomDomain(host: string): boolean;
  /** Who this bearer credential belongs to; null when it is not, or no longer, valid. */
  authenticate(token: string): Maybe<Principal | null>;
  /** Whether this principal may call workloads of this kind in this workspace. */
  authorize(principal: Principal, access: Pick<Workload, "workspace" | "kind" | "kept">): Maybe<boolean>;
  /** Whether this principal may read what the workloads of this workspace have written. */
  mayReadLogs(principal: Principal, workspace: string): Maybe<boolean>;
  /** Whether there is a workspace of this name; asked only for callers who have no business there. */
  hasWorkspace?(name: string): Promise<boolean>;
  /** Address of the platform, which gives out credentials for workloads. */
  issuer(): string;
  /** The workload behind an address; null when there is none. May throw WORKSPACE_NOT_FOUND. */
  resolve(target: Target): Maybe<Workload | null>;
  /** A running instance that can answer now; null when one has to be started or thawed first. */
  ready(workload: Workload, revision: string | null): InstanceLease | null;
  /** The instance that a lease of this key was on, while it answers; null when it no longer does. */
  rejoin(workload: Workload, key: string): (InstanceLease & { revision: string | null }) | null;
  /** Starts or thaws an instance. Rejects with a GatewayError or PlatformError that says why it could not. */
  wake(workload: Workload, revision: string | null, options: { signal: AbortSignal }): Promise<InstanceLease>;
  /** Connects to an instance: its API, or one port inside. */
  dial(lease: InstanceLease, door: Door): Promise<Duplex>;
  /** Keeps a request that is answered at once and delivered later; false when too many wait. Durable once it is true. */
  keepRequest(kept: KeptRequest): Promise<boolean>;
  /** Told once per admitted request, after its end. */
  meter(record: RequestRecord): void;
  /** A request that the platform answers itself; null = the workload does, if there is one. */
  ownEndpoint?(request: OwnRequest): OwnEndpoint | null;
  /** Kinds that another room serves itself, after routing alone: models. */
  answerers?: Partial<Record<WorkloadKind, Answerer>>;
  /** The same for rooms that want Node's own request and response: jobs. */
  handlers?: Partial<Record<WorkloadKind, Handler>>;
}

/** An address that a workload has beside its own. */
export interface HttpTrigger {
  id: string;
  /** Answered at once, delivered later. */
  async: boolean;
  /** Below the workspace, with a leading slash. */
  path: string;
  /** Below the workload's own address, "" for that address itself; null when it lies elsewhere. */
  own: string | null;
  on: boolean;
  /** Null: as the workload itself. */
  public: boolean | null;
}

export interface OwnRequest {
  kind: WorkloadKind;
  workspace: string;
  uid: string;
  method: string;
  /** Raw, behind the workload's address. */
  path: string;
  header(name: string): string | undefined;
}

/** Gets the request's body; the signal aborts when the client leaves. */
export type OwnEndpoint = (body: Buffer, signal: AbortSignal) => Promise<OwnAnswer>;

export interface OwnAnswer {
  status: number;
  /** JSON; null for none. */
  body: unknown;
  headers?: Record<string, string>;
}

/** An asynchronous request as the workload is to get it, later. */
export interface StoredRequest {
  method: string;
  /** Complete, without credentials of the platform. */
  head: string;
  hasBody: boolean;
  /** base64 */
  body: string;
  requestId: string;
}

export interface KeptRequest {
  workload: Workload;
  triggerId: string | null;
  request: StoredRequest;
}

export interface GatewaySettings {
  /** Word in header and cookie names. */
  brand: string;
  domain?: string | undefined;
  /** True behind a terminator whose X-Forwarded-* can be believed. */
  trustProxy: boolean;
  consoleHost?: string | undefined;
  /** Whether the platform is reached by names of loopback. */
  isLoopback: boolean;
  /** What happens to workloads' pages in the path form. */
  pathPages: PathPages;
  /** Address of the page that explains the error codes. */
  docsUrl: string;
  limits: GatewayLimits;
}

export interface GatewayLog {
  /** A line for every request; costs nothing while the level is off, which is the default. */
  debug(fields: Record<string, unknown>, sentence: string): void;
  warn(fields: Record<string, unknown>, sentence: string): void;
  error(fields: Record<string, unknown>, sentence: string): void;
}

export type Target =
  | { by: "name"; kind: WorkloadKind; workspace: string; name: string }
  | { by: "label"; label: string }
  | { by: "preview"; workspace: string | null; id: string }
  | { by: "domain"; host: string }
  | { by: "internal"; hash: string }
  | { by: "trigger"; workspace: string; path: string }
  | { by: "uid"; workspace: string; uid: string };

export interface Principal {
  /** User or service account. */
  id: string;
  type: string;
  /** How it proved itself: "api_key", "oauth". */
  method: string;
  /** The key it came with, if that was it. */
  keyId?: string | null;
}

export interface Workload {
  kind: WorkloadKind;
  uid: string;
  workspace: string;
  name: string;
  public: boolean;
  enabled: boolean;
  /** Why its policies let it run nothing here; absent when they do. */
  refusal?: string;
  /** Null for kinds without revisions. */
  revisions: RevisionPlan | null;
  /** Where requests go inside the instance; "platform": there is none, the platform answers itself. */
  door: Door | "platform";
  /** Its host label where that is not the natural one; "" = it has none. */
  label?: string | undefined;
  /** Addresses beside its own. */
  triggers: readonly HttpTrigger[];
  /** Set when the address is a preview's. */
  preview: PreviewRules | null;
  /** Set when only some roles may enter. */
  kept?: Kept | null;
}

/** "api" is the sandbox's own API; a number is a port of whatever runs inside. */
export type Door = "api" | number;

export interface PreviewRules {
  id: string;
  public: boolean;
  requestHeaders: FixedHeaders | null;
  responseHeaders: FixedHeaders | null;
  /** Whether this token opens the preview now. */
  checkToken(token: string): Maybe<boolean>;
}

/** A claim on a running instance for the time of one request. */
export interface InstanceLease {
  /** Changes when the instance is replaced: connections are kept under it. */
  key: string;
  release(): void;
}

export interface RequestRecord {
  workload: Workload;
  revision: string | null;
  principal: Principal | null;
  method: string;
  /** 0 when the client left before there was one. */
  status: number;
  bytesIn: number;
  bytesOut: number;
  startedAtMs: number;
  durationMs: number;
  /** How long the request was held for a start or a thaw; null when an instance was ready. */
  heldMs: number | null;
  error: GatewayErrorCode | null;
  clientGone: boolean;
}

export interface HandledRoute {
  kind: WorkloadKind;
  workspace: string;
  name: string;
  /** Raw, behind the workload's address, with the query. */
  path: string;
  prefix: string;
  /** The id of the trigger that the request came by. */
  trigger: string | null;
}

/** Answers completely, refusals included; resolves when the request is over, and never rejects. */
export type Answerer = (down: Downstream, route: HandledRoute, challenge: Challenge) => Promise<void>;

/** What a refusal for want of credentials has to say beside its code: where they are given out. */
export type Challenge = (error?: string) => Required<Pick<GatewayErrorOptions, "headers">> | undefined;

export type Handler = (req: IncomingMessage, res: ServerResponse, route: HandledRoute) => void;
