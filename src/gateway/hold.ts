/**
 * Holds a request while its workload starts or thaws. Time and number are limited; a disconnecting client ends the
 * hold.
 */
import { asGatewayError, GatewayError } from "../contract/gateway-errors.ts";
import type { Downstream } from "../http/downstream.ts";
import type { GatewayCounters } from "./counters.ts";
import type { GatewayDeps, InstanceLease, Workload } from "./deps.ts";

/** The client disconnected while the request was held, so there is no answer to write. */
export class ClientGone extends Error {}

export async function hold(
  { deps, counters }: { deps: GatewayDeps; counters: GatewayCounters },
  down: Downstream,
  workload: Workload,
  revision: string | null,
): Promise<InstanceLease> {
  const { holdMs, heldMax } = deps.settings.limits;
  if (counters.held(1) > heldMax) {
    counters.held(-1);
    throw new GatewayError("OVERLOADED", undefined, { headers: { "retry-after": "1" } });
  }
  const abort = new AbortController();
  const timer = setTimeout(
    () => abort.abort(new GatewayError("COLD_START_TIMEOUT", `The workload was not ready within ${holdMs / 1000} s.`)),
    holdMs,
  );
  down.attach({ ...SILENT, onClientGone: () => abort.abort(new ClientGone()) });
  try {
    return await untilAborted(deps.wake(workload, revision, { signal: abort.signal }), abort.signal);
  } catch (error) {
    if (abort.signal.aborted) throw abort.signal.reason;
    throw asGatewayError(error);
  } finally {
    clearTimeout(timer);
    counters.held(-1);
  }
}

const SILENT = { onRequestBody() {}, onRequestEnd() {}, onClientDrain() {} };

/** Does not rely on `waking` to obey the signal; a lease that arrives too late is released. */
function untilAborted(waking: Promise<InstanceLease>, signal: AbortSignal): Promise<InstanceLease> {
  return new Promise<InstanceLease>((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    waking.then((lease) => {
      if (signal.aborted) lease.release();
      else resolve(lease);
    }, reject);
  });
}
