/** One request on its way to a workload, and the parts of the gateway that serve it. */
import { GatewayError } from "../contract/gateway-errors.ts";
import type { Downstream } from "../http/downstream.ts";
import type { OpenRight } from "../http/open-rights.ts";
import type { PlatformResponseOptions } from "../http/platform-response.ts";
import type { WorkloadRoute } from "../http/route.ts";
import type { MemoryPressure } from "../lib/memory-pressure.ts";
import type { AdmitContext, Admitted } from "./admit.ts";
import type { GatewayCounters } from "./counters.ts";
import type { ForwardContext } from "./forward.ts";
import type { TaskIds } from "./mcp/task-ids.ts";
import type { OpenExchanges } from "./open-exchanges.ts";

export interface ServeContext extends AdmitContext {
  counters: GatewayCounters;
  open: OpenExchanges;
  memory: MemoryPressure;
  forwarding: ForwardContext;
  /** The same for requests that are handed to other nodes, whose connections are kept longer. */
  handing: ForwardContext;
  responding: PlatformResponseOptions;
  identityWords: string[];
  /** The tasks of MCP servers, by their callers. */
  tasks: TaskIds;
  /** Serves a request that the platform makes for a client. */
  within(down: Downstream, route: WorkloadRoute, origin: CallOrigin): Promise<void>;
  stopping: boolean;
  /** Each connection ends with its next answer: another process has taken this one's place. */
  retiring: boolean;
  /** Requests being served, tunnels included. */
  running: number;
  drained: (() => void) | null;
}

/**
 * Who makes a request: a client; the platform for a client, to a function behind a virtual server; or the platform
 * itself, which lists the tools of the active revision and gets all of them.
 */
export type CallOrigin = "client" | "virtual-server" | "pinning";

export interface Call {
  startedAtMs: number;
  startedMs: number;
  requestId: string;
  admitted: Admitted;
  /** The part of the path before the path that the workload sees. */
  prefix: string;
  /** The same as `prefix` where the workload shares the platform's origin; "" where the workload has its own host. */
  pagePrefix: string;
  method: string;
  revision: string | null;
  origin: CallOrigin;
  heldMs: number | null;
  /** Null for a request that the platform delivers later. */
  right: OpenRight | null;
  /** Called once, at the end. */
  leave(): void;
}

/** Requires that the gateway takes new requests: it is not stopping, and there is memory for another one. */
export function requireRoom({ stopping, memory }: ServeContext): void {
  if (stopping) throw new GatewayError("SHUTTING_DOWN", undefined, { headers: { "retry-after": "1" } });
  if (memory.isHigh)
    throw new GatewayError("OVERLOADED", "The server is short of memory.", { headers: { "retry-after": "5" } });
}

/** Called at the end of every request. */
export function finished(context: ServeContext): void {
  context.running -= 1;
  if (context.running === 0) context.drained?.();
}
