/** Deliveries as the core knows them. */
import { HOUR_MS } from "../../lib/time/clock.ts";

/**
 * What is to be done next: hand a request to a workload, start an execution of a job, or tell a callback address what
 * came of it.
 */
export type DeliveryPhase = "request" | "execution" | "callback";

/** Who asked: a client that did not want to wait, a cron trigger, or an execution that has ended. */
export type DeliveryCause = "async" | "cron" | "execution";

export interface DeliveryRow {
  id: string;
  workspace: string;
  /** The workload that it is about. */
  kind: string;
  uid: string;
  /** "" when no trigger is behind it. */
  trigger_id: string;
  cause: DeliveryCause;
  phase: DeliveryPhase;
  /** What to deliver, as JSON; requests and answers are their owners' business. */
  sealed: string;
  bytes: number;
  /** Counts claims; whoever reports about a delivery must name the current one. */
  attempt: number;
  /** Tries of this phase that came to nothing. */
  failures: number;
  holder: string;
  /** When somebody may take it; while it is held, when the holder's lease ends. */
  due_at: number;
  /** After this it is given up. */
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
  /** How long it is tried. */
  withinMs: number;
  /** However much waits already. */
  unbounded?: true;
}

export interface Delivery extends Omit<DeliveryRow, "sealed" | "due_at" | "holder"> {
  payload: unknown;
}

/** A receiver that is down for the night hears of it in the morning. */
export const CALLBACK_WITHIN_MS = 24 * HOUR_MS;

/** The body of a callback, as its receivers know it. */
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
  /** The next phase follows, within so long. */
  | { do: "follow"; phase: DeliveryPhase; payload: unknown; withinMs: number };

/** Who makes deliveries of one phase. */
export interface DeliveryLine {
  phase: DeliveryPhase;
  /** At a time, in this process. */
  atOnceMax: number;
  /** Of one workload, so that a slow one leaves room for the others. */
  ofOneMax: number;
  /** Rejects when the signal is aborted, or when something is wrong that a later try may find right. */
  deliver(delivery: Delivery, signal: AbortSignal): Promise<DeliveryOutcome>;
}

export interface DeliveryCountRow {
  workspace: string;
  waiting: number;
  bytes: number;
}
