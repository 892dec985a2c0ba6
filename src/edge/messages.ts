/**
 * What the owner and an edge process say to each other. The owner is the server itself: it has the database, the node
 * and the management API. An edge process accepts connections on the server's port, forwards requests to workloads
 * that run, and hands every other request to the owner. It learns routes and callers by asking, and forgets them when
 * the owner tells it of a change. Messages of one channel arrive in the order in which they were sent.
 */
import type { Instance } from "../contract/instance.ts";
import type { GatewaySettings, Principal, Target, Workload } from "../gateway/deps.ts";
import type { GatewayTotals } from "../gateway/totals.ts";
import type { EdgeConfig } from "../http/edge.ts";
import type { Credential } from "../lib/x509/certificate.ts";
import type { Endpoint } from "../node/dial/endpoint.ts";

/** Descriptor of the port in an edge process: behind stdin, stdout, stderr and the channel. */
export const PORT_FD = 4;
/** Name of the owner among the peers of an edge process. */
export const OWNER = "owner";

/** Everything that an edge process is told once. */
export interface EdgeStart {
  config: EdgeConfig;
  settings: Omit<GatewaySettings, "proxies">;
  /** URL of the platform, which issues credentials. */
  issuer: string;
  consoleOrigin: string;
  /** Host names of the platform itself. */
  names: readonly string[];
  /** The server's own certificate; null without TLS. The authority that made it is the owner's alone. */
  certificate: Credential | null;
  certificates: readonly (readonly [name: string, credential: Credential])[];
  /** The custom domains. */
  domains: readonly string[];
  /** Socket at which the owner takes requests, and the secret that a connection to it begins with (base64). */
  door: { path: string; secret: string };
  logsDebug: boolean;
}

/** Questions of an edge process, with their answers. */
export interface Questions {
  /** The workload behind an address and its running instances; null when the owner serves the request. */
  route: [asked: Target, answer: KnownRoute | null];
  /** Claims an instance: it is not frozen or let go while requests are open. False when it no longer runs. */
  claim: [asked: { uid: string; copy: string }, answer: boolean];
  /** The instance that takes the place of one that nothing listens in; null when that one still runs. */
  replacement: [
    asked: { workload: Workload; copy: string; revision: string | null },
    answer: Instance<Endpoint> | null,
  ];
  /** The owner of a credential; null when the credential is not valid. */
  caller: [asked: { token: string }, answer: KnownCaller | null];
  /** Whether the owner of a credential may call this workload. */
  permission: [asked: Permission, answer: boolean];
  /** Whether a connection that a credential has opened to this workload may stay. */
  stillAllowed: [asked: Permission, answer: boolean];
  /** Until when a token opens a preview; 0 = it does not. */
  previewToken: [
    asked: { workload: string; preview: { workspace: string; uid: string }; token: string },
    answer: number,
  ];
  httpChallenge: [asked: { token: string }, answer: string | null];
  tlsChallenge: [asked: { host: string }, answer: Credential | null];
}

export type QuestionName = keyof Questions;

export interface KnownRoute {
  workload: SentWorkload;
  instances: Instance<Endpoint>[];
}

/** A workload without functions, as a message carries it. */
export type SentWorkload = Omit<Workload, "preview"> & { preview: SentPreview | null };

export interface SentPreview {
  id: string;
  public: boolean;
  /** Names and values alternating. */
  requestHeaders: readonly string[];
  responseHeaders: readonly string[];
  untilMs: number;
}

/** A message has no number for a time without end. */
export const finite = (ms: number): number => Math.min(ms, Number.MAX_SAFE_INTEGER);

export interface KnownCaller {
  principal: Pick<Principal, "id" | "type" | "method" | "keyId">;
  /** When the credential has to be looked at again, in milliseconds since 1970. */
  untilMs: number;
}

export type Permission = { token: string } & Pick<Workload, "workspace" | "kind" | "kept">;

/** Requests open on an instance; `ended` gives the claim back. */
export interface OpenCount {
  copy: string;
  open: number;
  ended: boolean;
}

/** A request that a process has served, for the metrics of the workload. */
export interface Served {
  uid: string;
  durationMs: number;
  isError: boolean;
}

export type FromOwner =
  | { type: "start"; start: EdgeStart }
  /** `fresh` = nothing has changed since the question came, so the answer may be kept. */
  | { type: "answer"; id: number; value: unknown; fresh: boolean }
  | { type: "failure"; id: number; message: string }
  /** A workload has changed; null = any of them may have. */
  | { type: "changed"; uid: string | null }
  /** Previews, triggers and hosts of custom domains may lead elsewhere. */
  | { type: "addresses" }
  | { type: "domains"; added: string[]; removed: string[] }
  /** Credentials, members or roles have changed. */
  | { type: "identities" }
  | { type: "certificate"; name: string; credential: Credential | null }
  /** The server's own certificate was replaced. */
  | { type: "ownCertificate"; credential: Credential }
  | { type: "ping"; id: number }
  /** Accept no more, serve the connections that are open until each of them ends, and end. */
  | { type: "retire" }
  /** Accept no more, finish what is open within `graceMs` and end. `keepIdle` = send idle connections to the owner. */
  | { type: "stop"; graceMs: number; keepIdle: boolean };

export type FromEdge =
  | { type: "loaded" }
  | { type: "serving" }
  | { type: "ask"; id: number; name: QuestionName; asked: unknown }
  | { type: "open"; counts: OpenCount[] }
  | { type: "served"; requests: Served[]; totals: GatewayTotals }
  | { type: "pong"; id: number; totals: GatewayTotals }
  | { type: "log"; level: "debug" | "warn" | "error"; fields: Record<string, unknown>; sentence: string }
  /** Comes with an idle connection of a client, from which nothing has been read. */
  | { type: "connection" };
