/** One request on the straight path, and the parts of the gateway that serve it. */
import type { PlatformResponseOptions } from "../http/platform-response.ts";
import type { AdmitContext, Admitted } from "./admit.ts";
import type { GatewayCounters } from "./counters.ts";
import type { ForwardContext } from "./forward.ts";

export interface ServeContext extends AdmitContext {
  counters: GatewayCounters;
  forwarding: ForwardContext;
  responding: PlatformResponseOptions;
  identityWords: string[];
  stopping: boolean;
  /** Requests being served, tunnels included. */
  running: number;
  drained: (() => void) | null;
}

export interface Call {
  startedAtMs: number;
  startedMs: number;
  requestId: string;
  admitted: Admitted;
  /** What stands before the path that the workload sees. */
  prefix: string;
  /** The same where the workload shares the platform's origin, "" where its host is its own. */
  pagePrefix: string;
  method: string;
  revision: string | null;
  heldMs: number | null;
}
