/** Everything the gateway needs from outside, as functions and data. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Registry } from "prom-client";
import type { WorkloadKind } from "../contract/addresses.ts";
import type { FacadeName } from "../contract/facades.ts";
import type { GatewayError, GatewayErrorCode, GatewayErrorOptions } from "../contract/gateway-errors.ts";
import type { Kept } from "../contract/kept-access.ts";
import type { ServedServer, ToolRules } from "../contract/tools/tool-rules.ts";
import type { ListedTool } from "../contract/tools/tool-state.ts";
import type { Downstream } from "../http/downstream.ts";
import type { FixedHeaders } from "../http/header-rules.ts";
import type { RightsChange } from "../http/open-rights.ts";
import type { PathPages } from "../http/page-rules.ts";
import type { FacadeRoute, WorkloadRoute } from "../http/route.ts";
import type { MemoryUse } from "../lib/memory-pressure.ts";
import type { Proxies } from "../lib/network/proxies.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { GatewayLimits } from "./limits.ts";
import type { RevisionPlan } from "./pick-revision.ts";
import type { GatewayTotals } from "./totals.ts";

export type Maybe<T> = T | Promise<T>;

export interface GatewayDeps {
  /** What the process uses of its memory; the real figures when absent. */
  memoryUse?: (() => readonly MemoryUse[]) | undefined;
  settings: GatewaySettings;
  clock: Clock;
  log: GatewayLog;
  registry: Registry;
  /** A number in [0, 1) that decides which requests go to a canary. */
  random(): number;

  /** True when the host is at or below a custom domain. Called for every request, so it must answer from memory. */
  isCustomDomain(host: string): boolean;
  /** The owner of a bearer credential; null when the credential is not, or no longer, valid. */
  authenticate(token: string): Maybe<Principal | null>;
  /** Whether this principal may call workloads of this kind in this workspace. */
  authorize(principal: Principal, access: Pick<Workload, "workspace" | "kind" | "kept">): Maybe<boolean>;
  /**
   * Whether the owner of a credential that has opened a connection may still have it. An access token whose time is over
   * counts while the consent behind it stands.
   */
  stillAllowed(token: string, access: Pick<Workload, "workspace" | "kind" | "kept">): Promise<boolean>;
  /** Tells of changes that may end rights; returns the end of telling. */
  onRightsChange?(listener: (change: RightsChange) => void): () => void;
  /** Whether this principal may read the logs of the workloads in this workspace. */
  mayReadLogs(principal: Principal, workspace: string): Maybe<boolean>;
  /** Whether a workspace of this name exists; called only for callers who are not allowed in it. */
  hasWorkspace?(name: string): Promise<boolean>;
  /** URL of the platform, which issues credentials for workloads. */
  issuer(): string;
  /** Origin of the console, whose page may read the answers of workloads; absent = there is none. */
  consoleOrigin?(): string;
  /** The workload behind an address; null when there is none. May throw WORKSPACE_NOT_FOUND. */
  resolve(target: Target): Maybe<Workload | null>;
  /** A running instance that can answer now; null when one has to be started or thawed first. */
  ready(workload: Workload, revision: string | null): Maybe<InstanceLease | null>;
  /** The instance with this lease key; null when it no longer runs. */
  rejoin(workload: Workload, key: string): (InstanceLease & { revision: string | null }) | null;
  /** Starts or thaws an instance. Rejects with a GatewayError or PlatformError that says why it could not. */
  wake(workload: Workload, revision: string | null, options: { signal: AbortSignal }): Promise<InstanceLease>;
  /** Connects to an instance: its API, or one of its ports. */
  dial(lease: InstanceLease, door: Door): Promise<Duplex>;
  /** Stores a request for later delivery; false when too many are waiting. Once true, the request is durable. */
  keepRequest(kept: KeptRequest): Promise<boolean>;
  /** Called once per admitted request, after its end. */
  meter(record: RequestRecord): void;
  /** Called when a pinned server lists tools that change what is recorded about it. */
  toolsListed?(workload: Workload, listed: readonly ListedTool[]): void;
  /** Records the tools of a newly deployed revision as approved. */
  toolsDeployed?(workload: Workload, revision: string, listed: readonly ListedTool[]): Promise<void>;
  /** Signs the ids of tasks that callers get. Absent = they hold as long as this process. */
  taskKey?: Buffer;
  /** The platform's own endpoint for this request; null = the workload answers. */
  ownEndpoint?(request: OwnRequest): OwnEndpoint | null;
  /** The other servers of the database; absent when there are none. */
  peers?: GatewayPeers;
  /**
   * In an edge process: the peer that gets every request which this process does not serve itself. Absent = this
   * process serves all requests.
   */
  onward?: string;
  /** Totals of the processes that share the port with this one; absent when there are none. */
  edgeTotals?(): Promise<readonly GatewayTotals[]>;
  /** Kinds that another module answers, after routing only: models. */
  answerers?: Partial<Record<WorkloadKind, Answerer>>;
  /** The APIs of other products. One that is switched off is absent. */
  facades?: Partial<Record<FacadeName, Facade>>;
  /** The same for modules that need Node's request and response objects: jobs. */
  handlers?: Partial<Record<WorkloadKind, Handler>>;
}

export interface GatewayPeers {
  /** Opens a connection to another node, for a request that is handed on. */
  dial(node: string): Promise<Duplex>;
  /** Delivers a stored request through the workload's node. */
  replay(node: string, asked: Replay): Promise<Replayed>;
}

/** A stored request to deliver. */
export interface Replay {
  workspace: string;
  uid: string;
  request: StoredRequest;
  /** Time limit of the whole exchange. */
  totalMs: number;
  /** Another server handed the request on to this one, which does not hand it on again. */
  handedOn?: true;
  signal: AbortSignal;
}

export interface Replayed {
  status: number;
  /** The beginning of the body, up to a limit. */
  body: Buffer;
  /** Length of the whole body. */
  length: number;
  /** Why the platform ended the exchange; null when the workload answered completely. */
  error: GatewayError | null;
}

/** An additional address of a workload. */
export interface HttpTrigger {
  id: string;
  /** The request is answered at once and delivered later. */
  async: boolean;
  /** Path below the workspace, with a leading slash. */
  path: string;
  /** Path below the workload's own address, "" for that address itself; null when it lies elsewhere. */
  own: string | null;
  on: boolean;
  /** null = as the workload itself. */
  public: boolean | null;
}

export interface OwnRequest {
  kind: WorkloadKind;
  workspace: string;
  uid: string;
  method: string;
  /** Raw path below the workload's address. */
  path: string;
  header(name: string): string | undefined;
}

/** Gets the request's body; the signal aborts when the client disconnects. */
export type OwnEndpoint = (body: Buffer, signal: AbortSignal) => Promise<OwnAnswer>;

export interface OwnAnswer {
  status: number;
  /** JSON; null for none. */
  body: unknown;
  headers?: Record<string, string>;
}

/** An asynchronous request in the form in which the workload gets it later. */
export interface StoredRequest {
  method: string;
  /** The complete head, without platform credentials. */
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
  /** The word in the names of headers and cookies. */
  brand: string;
  domain?: string | undefined;
  /** True behind a proxy that ends TLS and whose X-Forwarded-* headers are trusted. */
  proxies: Proxies;
  consoleHost?: string | undefined;
  /** Host of the platform's own address. */
  publicHost?: string | undefined;
  /** Whether the platform is reached by loopback names. */
  isLoopback: boolean;
  /** How HTML pages of workloads are served at path addresses; see page-rules.ts. */
  pathPages: PathPages;
  /** URL of the page that explains the error codes. */
  docsUrl: string;
  limits: GatewayLimits;
}

export interface GatewayLog {
  /** Logs a line for every request; free while the level is off, which is the default. */
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
  /** How the principal authenticated: "api_key", "oauth". */
  method: string;
  /** Id of the API key, when one was used. */
  keyId?: string | null;
}

export interface Workload {
  kind: WorkloadKind;
  uid: string;
  workspace: string;
  name: string;
  public: boolean;
  enabled: boolean;
  /** Why the workload's policies do not let it run here; absent when they do. */
  refusal?: string;
  /** Null for kinds without revisions. */
  revisions: RevisionPlan | null;
  /** The node that serves the workload, when that is another than this one. */
  elsewhere: string | null;
  /** Where requests go inside the instance; "platform" = there is no instance, the platform answers. */
  door: Door | "platform";
  /** The workload's host label where it differs from the natural one; "" = it has none. */
  label?: string | undefined;
  /** Additional addresses of the workload. */
  triggers: readonly HttpTrigger[];
  /** Set when the address is a preview's. */
  preview: PreviewRules | null;
  /** Set when only some roles may enter. */
  kept?: Kept | null;
  /** Set when not all tools of an MCP server reach everybody. */
  tools?: ToolRules | null;
  /** Functions whose tools the platform serves here under prefixed names. */
  servers?: readonly ServedServer[] | null;
}

/** "api" is the sandbox's own API; a number is a port inside the instance. */
export type Door = "api" | number;

export interface PreviewRules {
  id: string;
  public: boolean;
  requestHeaders: FixedHeaders | null;
  responseHeaders: FixedHeaders | null;
  /** When the preview expires; Infinity = never. */
  untilMs: number;
  /** Whether this token opens the preview now. */
  checkToken(token: string): Maybe<boolean>;
}

/** A claim on a running instance for the time of one request. */
export interface InstanceLease {
  /** Key of the connection pool; changes when the instance is replaced. */
  key: string;
  release(): void;
}

export interface RequestRecord {
  workload: Workload;
  revision: string | null;
  principal: Principal | null;
  method: string;
  /** 0 when the client disconnected before there was a status. */
  status: number;
  bytesIn: number;
  bytesOut: number;
  startedAtMs: number;
  durationMs: number;
  /** Milliseconds that the request waited for a start or a thaw; null when an instance was ready. */
  heldMs: number | null;
  error: GatewayErrorCode | null;
  clientGone: boolean;
}

export interface HandledRoute {
  kind: WorkloadKind;
  workspace: string;
  name: string;
  /** Raw path below the workload's address, with the query. */
  path: string;
  prefix: string;
  /** The id of the trigger that the request came by. */
  trigger: string | null;
}

/** Answers the request completely, refusals included. Resolves when the request is over and never rejects. */
export type Answerer = (down: Downstream, route: HandledRoute, challenge: Challenge) => Promise<void>;

/** Answers a request for the API of another product, or says where the platform serves it; null = it is answered. */
export type Facade = (down: Downstream, route: FacadeRoute) => Promise<Passage | null>;

/** A request of a façade as one of the platform's own: to a workload, or for the node that has the workload. */
export type Passage = PassageToWorkload | { node: string };

export interface PassageToWorkload {
  down: Downstream;
  route: WorkloadRoute;
  /** The caller, where the façade knows them; null = by the platform's own credentials. Rights are checked as always. */
  caller: KnownCaller | null;
}

/** A caller whom a façade has found by credentials of its own. */
export interface KnownCaller {
  principal: Principal;
  again: FindAgain;
}

/** Looks up the caller once more; null when the credentials are not valid any more. */
export type FindAgain = () => Promise<Principal | null>;

/** The headers of a 401 answer, which say where credentials are issued. */
export type Challenge = (error?: string) => Required<Pick<GatewayErrorOptions, "headers">> | undefined;

export type Handler = (req: IncomingMessage, res: ServerResponse, route: HandledRoute) => void;
