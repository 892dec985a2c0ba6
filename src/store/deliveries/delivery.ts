/** Deliveries as the core knows them. */
import { HOUR_MS } from "../../lib/time/clock.ts";

/**
 * The next step: send a request to a workload, start an execution of a job, or report the result to a callback address.
 */
export type DeliveryPhase = "request" | "execution" | "callback";

/** The origin: a client that did not wait, a cron trigger, or an execution that has ended. */
export type DeliveryCause = "async" | "cron" | "execution";

export interface DeliveryRow {
  id: string;
  workspace: string;
  /** Kind of the workload that the delivery belongs to. */
  kind: string;
  uid: string;
  /** "" when no trigger caused the delivery. */
  trigger_id: string;
  cause: DeliveryCause;
  phase: DeliveryPhase;
  /** The payload as JSON, sealed because requests and answers are private to their owners. */
  sealed: string;
  bytes: number;
  /** Counts claims. A report about a delivery must name the current attempt. */
  attempt: number;
  /** Failed tries of this phase. */
  failures: number;
  holder: string;
  /** When a server may claim the delivery; while it is held, the end of the holder's lease. */
  due_at: number;
  /** The delivery is given up after this time. */
  deadline_at: number;
  created_at: number;
}

export interface DeliveryDraft {
  workspace: string;
  kind: string;
  uid: string;
  triggerId: string;
  cause: DeliveryCause;
  phase: DeliveryPhase;
  payload: unknown;
  /** Time until the delivery is given up. */
  withinMs: number;
  /** Ignores the limit on waiting deliveries. */
  unbounded?: true;
}

export interface Delivery extends Omit<DeliveryRow, "sealed" | "due_at" | "holder"> {
  payload: unknown;
}

/** Callbacks are retried for a day, so that a receiver that is down overnight still gets them. */
export const CALLBACK_WITHIN_MS = 24 * HOUR_MS;

/** The body of a callback request. Receivers depend on these names. */
export interface CallbackPayload {
  status_code: number;
  response_body: string;
  response_length: number;
  /** Seconds since the epoch. */
  timestamp: number;
  request_id: string;
}

export type DeliveryOutcome =
  | { do: "finish" }
  | { do: "retry"; afterMs: number; failed: boolean }
  /** Continue with another phase, which is given up after `withinMs`. */
  | { do: "follow"; phase: DeliveryPhase; payload: unknown; withinMs: number };

/** Makes the deliveries of one phase. */
export interface DeliveryLine {
  phase: DeliveryPhase;
  /** Most deliveries in progress in this process. */
  atOnceMax: number;
  /** Most deliveries in progress per workload, so that a slow workload leaves room for others. */
  ofOneMax: number;
  /** Rejects when the signal is aborted, or on an error that a later try may not meet. */
  deliver(delivery: Delivery, signal: AbortSignal): Promise<DeliveryOutcome>;
}

export interface DeliveryCountRow {
  workspace: string;
  waiting: number;
  bytes: number;
}
