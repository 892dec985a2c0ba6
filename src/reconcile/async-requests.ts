/**
 * Delivers asynchronous requests and those of cron triggers to their workloads. A request is sent until the workload
 * answers, for fifteen minutes, and once in any case; an answer of 500 and above is asked again as often as the trigger
 * says. Then whoever is to be called back is.
 */
import { GATEWAY_ERRORS, type GatewayError } from "../contract/gateway-errors.ts";
import { type Trigger, triggerNamed } from "../contract/triggers.ts";
import { backoffMs } from "../lib/backoff.ts";
import { type Clock, MINUTE_MS, SECOND_MS } from "../lib/time/clock.ts";
import type { Meter } from "../metering/meter.ts";
import {
  CALLBACK_WITHIN_MS,
  type CallbackPayload,
  type Delivery,
  type DeliveryLine,
  type DeliveryOutcome,
} from "../store/deliveries/delivery.ts";
import { noteEvent } from "../store/resources/note-event.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Store } from "../store/store.ts";

/** How long a delivery is tried, and the time limit of one attempt. */
export const ASYNC_WITHIN_MS = 15 * MINUTE_MS;
/** Backoff between attempts. Short at first: a copy that has just ended is replaced within a moment. */
const AGAIN = { baseMs: SECOND_MS / 2, maxMs: 15 * SECOND_MS };
const AT_ONCE_MAX = 128;
const OF_ONE_MAX = 64;

/** The stored payload: the request, and what the meter needs even after the workload is deleted. */
export interface AsyncPayload<Request = unknown> {
  name: string;
  request: Request;
}

/** The answer of the workload, or of the platform in its place. */
export interface DeliveryAnswer {
  status: number;
  body: Buffer;
  length: number;
  error: GatewayError | null;
}

export interface AsyncRequestsDeps<Request> {
  store: Store;
  clock: Clock;
  meter: Pick<Meter, "count">;
  /** By the gateway's own path. */
  replay(asked: {
    workspace: string;
    uid: string;
    request: Request;
    totalMs: number;
    signal: AbortSignal;
  }): Promise<DeliveryAnswer>;
}

/** Stores an asynchronous request; false when too many are waiting. */
export const createRequestKeeper =
  ({ deliveries }: Pick<Store, "deliveries">) =>
  <Request>({ workload, triggerId, request }: Kept<Request>): Promise<boolean> => {
    const { workspace, kind, uid, name } = workload;
    const payload: AsyncPayload<Request> = { name, request };
    const what = { triggerId: triggerId ?? "", cause: "async", phase: "request" } as const;
    return deliveries.add({ workspace, kind, uid, ...what, payload, withinMs: ASYNC_WITHIN_MS });
  };

interface Kept<Request> {
  workload: { workspace: string; kind: string; uid: string; name: string };
  triggerId: string | null;
  request: Request;
}

export function asyncRequestLine<Request extends { requestId: string }>(
  deps: AsyncRequestsDeps<Request>,
): DeliveryLine {
  return {
    phase: "request",
    atOnceMax: AT_ONCE_MAX,
    ofOneMax: OF_ONE_MAX,
    async deliver(delivery, signal) {
      const { name, request } = delivery.payload as AsyncPayload<Request>;
      const { workspace, uid } = delivery;
      const resource = await deps.store.resources.getByUid(workspace, uid);
      const trigger = resource ? triggerNamed(resource, delivery.trigger_id) : undefined;
      // Metered before the request can be deleted; metering it again after a crash changes nothing.
      const counted = countRequest(delivery, name, deps);
      const totalMs = timeoutMsOf(trigger);
      const [answered] = await Promise.all([deps.replay({ workspace, uid, request, totalMs, signal }), counted]);
      const outcome = afterAnswer(delivery, answered, trigger, request.requestId, deps.clock.now());
      if (answered.error && outcome.do !== "retry") await noteFailure(resource, delivery, answered.error, deps);
      return outcome;
    },
  };
}

function timeoutMsOf(trigger: Trigger | undefined): number {
  const seconds = trigger?.configuration?.timeout ?? 0;
  return seconds > 0 ? Math.min(seconds * SECOND_MS, ASYNC_WITHIN_MS) : ASYNC_WITHIN_MS;
}

/** Decides what happens to a delivery after an answer. */
export function afterAnswer(
  delivery: Pick<Delivery, "failures" | "deadline_at">,
  answered: DeliveryAnswer,
  trigger: Trigger | undefined,
  requestId: string,
  nowMs: number,
): DeliveryOutcome {
  const { failures, deadline_at } = delivery;
  const { error, status } = answered;
  if (error?.code === "SHUTTING_DOWN") return { do: "retry", afterMs: SECOND_MS, failed: false };
  const afterMs = backoffMs(failures, AGAIN);
  const inTime = nowMs + afterMs < deadline_at;
  const wanted = error ? GATEWAY_ERRORS[error.code].retryable : status >= 500 && failures < retriesOf(trigger);
  if (wanted && inTime) return { do: "retry", afterMs, failed: true };
  if (!trigger?.configuration?.callbackUrl) return { do: "finish" };
  return {
    do: "follow",
    phase: "callback",
    payload: callbackOf(answered, requestId, nowMs),
    withinMs: CALLBACK_WITHIN_MS,
  };
}

const retriesOf = (trigger: Trigger | undefined): number => trigger?.configuration?.retry ?? 0;

const callbackOf = ({ status, body, length }: DeliveryAnswer, requestId: string, nowMs: number): CallbackPayload => ({
  status_code: status,
  response_body: body.toString("utf8"),
  response_length: length,
  timestamp: Math.floor(nowMs / SECOND_MS),
  request_id: requestId,
});

/** Requests of cron triggers are the platform's own and are not counted. */
async function countRequest(
  { id, kind, cause, workspace, uid, created_at }: Delivery,
  name: string,
  { store, meter }: Pick<AsyncRequestsDeps<unknown>, "store" | "meter">,
): Promise<void> {
  if (kind !== "agent" || cause !== "async") return;
  const accountId = (await store.workspaces.get(workspace))?.accountId;
  if (accountId === undefined) return;
  const agent = { accountId, workspace, name, uuid: uid };
  await meter.count(agent, "agent_async_requests_count", 1, { key: id, atMs: created_at });
}

async function noteFailure(
  resource: Resource | null,
  { cause, trigger_id }: Delivery,
  error: GatewayError,
  { store }: Pick<AsyncRequestsDeps<unknown>, "store">,
): Promise<void> {
  if (!resource) return;
  const what = cause === "cron" ? `The request of trigger '${trigger_id}'` : "An asynchronous request";
  await noteEvent(store, resource, { type: "request-failed", message: `${what} was given up: ${error.message}` });
}
