/** One request on its way to a workload, and the parts of the gateway that serve it. */
import { GatewayError } from "../contract/gateway-errors.ts";
import type { PlatformResponseOptions } from "../http/platform-response.ts";
import type { MemoryPressure } from "../lib/memory-pressure.ts";
import type { AdmitContext, Admitted } from "./admit.ts";
import type { GatewayCounters } from "./counters.ts";
import type { ForwardContext } from "./forward.ts";
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
  stopping: boolean;
  /** Each connection ends with its next answer: another process has taken this one's place. */
  retiring: boolean;
  /** Requests being served, tunnels included. */
  running: number;
  drained: (() => void) | null;
}

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
  heldMs: number | null;
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
