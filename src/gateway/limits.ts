/** Every limit of the inference path, with its reason. All of them are settings. */
import type { WorkloadKind } from "../contract/addresses.ts";
import { FILE_CONTENT_BYTES_MAX } from "../contract/sandbox-wire.ts";
import { connectionsWithin } from "../http/connections.ts";
import { HEAD_WAIT_MS } from "../http/newcomers.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../lib/time/clock.ts";
import type { ExchangeLimits } from "./forward.ts";

export interface GatewayLimits {
  of: Record<WorkloadKind | "preview", ExchangeLimits>;
  /** How long a request is held while its workload starts. */
  holdMs: number;
  /** Requests held at the same time. Each keeps a client's connection and a little memory. */
  heldMax: number;
  /**
   * Requests and streams open at the same time: of all workspaces, of one, of one caller. `isShare` = other processes of
   * this server have the rest.
   */
  openMax: { server: number; workspace: number; caller: number; isShare?: boolean };
  /** Open connections of clients, whether they have a request or not. */
  clientsMax: number;
  /** Concurrent connections to one instance. */
  connectionsMax: number;
  /** Bytes of content in one JSON or form request that writes files; null for no limit. Raw bodies have none. */
  sandboxFileMax: number | null;
  /** How long a new connection may take for its first request. */
  headMs: number;
  /** Connections without a complete request. Above this number the oldest is closed. */
  newcomersMax: number;
  /** Interval between two checks of the deadlines. */
  tickMs: number;
  /** Interval between two looks at the rights of everything that is open, beside those after each change. */
  rightsMs: number;
}

/** Longest duration of a request. Longer work is asynchronous, or a job. */
const REQUEST_TOTAL_MS = 15 * MINUTE_MS;
/** Idle timeout of agents, as the API contract promises. */
const AGENT_IDLE_MS = 100 * SECOND_MS;
/** Idle timeout of upgraded connections and sandbox streams, which are often silent: shells, watchers, hot reload. */
const STREAM_IDLE_MS = 15 * MINUTE_MS;
/** Longest duration of a stream: forgotten terminals and watchers end after a day. */
const STREAM_TOTAL_MS = 24 * HOUR_MS;

/** A client that has a body to send and sends nothing for a minute is gone, or an attack. */
const BODY_IDLE_MS = MINUTE_MS;

const COMMON = {
  tunnelIdleMs: STREAM_IDLE_MS,
  tunnelTotalMs: STREAM_TOTAL_MS,
  bodyMax: null,
  bodyIdleMs: BODY_IDLE_MS,
};
const CALL: ExchangeLimits = { idleMs: AGENT_IDLE_MS, totalMs: REQUEST_TOTAL_MS, ...COMMON };
const STREAM: ExchangeLimits = { idleMs: STREAM_IDLE_MS, totalMs: REQUEST_TOTAL_MS, ...COMMON };

/** Workspaces that may all be at their limit. A client that does not read costs up to 128 KB: one gigabyte in all. */
const BUSY_WORKSPACES = 4;
/** Connections for each open request: clients keep some for their next one. */
const CONNECTIONS_EACH = 2;

/** `workspace`: requests that one workspace may have open. */
export const openMaxOf = (workspace: number): GatewayLimits["openMax"] => ({
  ...{ server: workspace * BUSY_WORKSPACES, workspace, caller: Math.ceil(workspace / 2) },
});

export const clientsMaxOf = (workspace: number): number =>
  connectionsWithin(workspace * BUSY_WORKSPACES * CONNECTIONS_EACH);

export const DEFAULT_LIMITS: GatewayLimits = {
  of: {
    agent: CALL,
    model: CALL,
    job: CALL,
    // Clients of an MCP server listen on a stream that is silent most of the time.
    function: STREAM,
    application: STREAM,
    preview: STREAM,
    // Log streams and running commands may take as long as the sandbox lives.
    sandbox: { idleMs: STREAM_IDLE_MS, totalMs: STREAM_TOTAL_MS, ...COMMON },
  },
  // Longer than a workload may take to become ready (60 s), shorter than clients and balancers usually wait.
  holdMs: 90 * SECOND_MS,
  heldMax: 10_000,
  openMax: openMaxOf(2048),
  clientsMax: clientsMaxOf(2048),
  connectionsMax: 4096,
  // Larger files go in parts or as a raw body.
  sandboxFileMax: FILE_CONTENT_BYTES_MAX,
  headMs: HEAD_WAIT_MS,
  // Eight times the kernel's backlog of connections, and a small part of the file descriptors.
  newcomersMax: 4096,
  tickMs: SECOND_MS,
  // Finds credentials whose time is over.
  rightsMs: 30 * SECOND_MS,
};
